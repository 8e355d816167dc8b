#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fetch/digest.h"

namespace sgdph::lab {

/// Where a data set comes from, and how to know it.
struct Source {
  std::string name;  ///< as in the registry of data sets

  std::string url;  ///< of the archive; empty: not for us to download, `instructions` says what to do
  std::optional<Checksum> checksum;
  std::string folder;                 ///< inside the archive, and under the root
  std::vector<std::string> required;  ///< files
  std::vector<std::string> optional;
  int64_t max_bytes = 0;  ///< unpacked

  std::string instructions;
  /// Digests under which a file is known as published.
  std::map<std::string, std::vector<std::string>> known_md5;

  int64_t train_images = 0;  ///< as published
  int64_t test_images = 0;
};

/// A UserError with the nearest name if there is none.
const Source& source_of(const std::string& name);

}  // namespace sgdph::lab
