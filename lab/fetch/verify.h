#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fetch/cancel.h"

namespace sgdph::lab::fetch {

enum class Provenance {
  Published,  ///< digests of the published files, or unchanged since a published archive was unpacked
  Recorded,   ///< unchanged since it was fetched, but from an archive with another checksum
  Unknown,
};

struct VerifyReport {
  std::string name;
  std::filesystem::path path;
  Provenance provenance = Provenance::Unknown;
  std::string source;  ///< by the manifest, where there is one
  int64_t classes = 0;
  int64_t train = 0;  ///< images
  int64_t test = 0;
  int64_t headers = 0;  ///< JPEG files whose header was read
  int64_t decoded = 0;  ///< images that were decoded

  std::string verdict() const;
  /// All of it, for a terminal.
  std::vector<std::string> lines() const;
};

struct VerifyOptions {
  bool headers = true;  ///< of every JPEG file
  bool decode = false;  ///< every image, not only headers
  std::function<void(int64_t images, int64_t total)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Checks digests against the manifest and the published ones where they are known, and the form of everything by
/// opening both parts. Damage is a UserError that names the file; a well-formed copy of unknown origin is none.
VerifyReport verify(
    const std::string& name, const std::filesystem::path& path, const VerifyOptions& options = VerifyOptions());

}  // namespace sgdph::lab::fetch
