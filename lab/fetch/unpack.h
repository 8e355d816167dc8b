#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fetch/cancel.h"

namespace sgdph::lab::fetch {

struct UnpackOptions {
  std::string folder;                 ///< of the archive, which holds the files
  std::vector<std::string> required;  ///< plain names of files
  std::vector<std::string> optional;
  int64_t max_bytes = int64_t{1} << 30;  ///< of everything in the archive, unpacked
  int64_t max_entries = 1000;
  const std::atomic<bool>* cancel = nullptr;
};

/// The archive's own fault, which no second attempt with the same bytes mends.
class BadArchive : public UserError {
 public:
  using UserError::UserError;
};

/// Writes the required files and those of the optional ones that there are into `target`, an existing folder, and
/// nothing else. tar (plain, gzip, xz, bzip2) and zip.
///
/// An archive that holds links, devices, absolute names or '..', that is truncated, larger than the limits or lacks a
/// required file is a BadArchive; what the disk does not take is a WriteError. Names of the archive are compared only
/// and never become paths.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& target, const UnpackOptions& options);

/// A fresh folder `.<name>.new` beside `target`, removed again unless it is put in place. What a killed process left
/// there is removed first: the caller holds a lock.
class StagingFolder {
 public:
  explicit StagingFolder(const std::filesystem::path& target);
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Renames it to `target`. A folder that is there already becomes `<target>.old` (or .old2, ...), whose name is
  /// returned; else nothing is.
  std::filesystem::path put_in_place();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
};

}  // namespace sgdph::lab::fetch
