#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sgdph::lab::fetch {

/// What was fetched, beside the files themselves, so that later damage is noticed.
struct Manifest {
  static constexpr const char* kFile = "sgdph-manifest.json";

  struct File {
    int64_t bytes = 0;
    std::string sha256;
  };

  std::string dataset;
  std::string source;            ///< URL
  std::string archive_checksum;  ///< md5:... or sha256:...
  bool official = false;         ///< the archive's checksum is the published one
  std::map<std::string, File> files;

  /// Takes size and digest of every file in the folder.
  void record_files(const std::filesystem::path& folder);
  void write(const std::filesystem::path& folder) const;
  /// Nothing if the folder has none; a UserError if it cannot be understood.
  static std::optional<Manifest> read(const std::filesystem::path& folder);
  /// A UserError names the first file that is missing, or differs in size or digest.
  void check_files(const std::filesystem::path& folder) const;
};

}  // namespace sgdph::lab::fetch
