#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab {

struct ListedImage {
  std::string filename;  ///< a plain name: no folders
  std::string label;
};

/// The lists of Mini-ImageNet: a header line `filename,label`, then a line for each image; `where` names the file in
/// messages, which count lines from 1. Lines may end as on Windows, and the last one may be blank.
std::vector<ListedImage> parse_image_list(std::string_view bytes, const std::string& where);

}  // namespace sgdph::lab
