#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab {

/// A file of the source tree, compiled in. Functions that list such files are written by `sgdph_embed` of CMake.
struct EmbeddedFile {
  std::string name;
  std::string_view text;
};

/// The file of that name; null if there is none.
inline const EmbeddedFile* find_embedded(const std::vector<EmbeddedFile>& files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace sgdph::lab
