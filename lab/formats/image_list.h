#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

struct ListedImage {
  std::string filename;  ///< a plain name: no folders
  std::string label;
};

/// The lists of Mini-ImageNet, which are CSV: a header line `filename,label`, then a line for each image; `where` names
/// the file in messages.
std::vector<ListedImage> parse_image_list(std::string_view bytes, const std::string& where);

}  // namespace sgdph::lab::formats
