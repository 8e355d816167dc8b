#include "formats/csv.h"

#include "base/error.h"

#include <algorithm>

namespace sgdph::lab {
namespace {

constexpr std::string_view kHeader = "filename,label";
constexpr size_t kShown = 80;

/// A message stays one readable line whatever the file holds.
std::string shown(std::string_view text) {
  return fmt::format("{:?}{}", text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// Cuts the next line off `bytes`.
std::string_view take_line(std::string_view& bytes) {
  const auto end = std::min(bytes.find('\n'), bytes.size());
  auto line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

ListedImage parse_line(std::string_view line, const std::string& where, size_t number) {
  const auto comma = line.find(',');
  if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) {
    fail("{}:{}: {} is not of the form 'filename,label'; correct the line", where, number, shown(line));
  }
  const auto filename = line.substr(0, comma);
  const auto label = line.substr(comma + 1);
  if (filename.empty() || label.empty()) {
    fail("{}:{}: the {} is empty; correct the line", where, number, filename.empty() ? "filename" : "label");
  }
  // The name is appended to the image folder: it must not lead out of it.
  if (filename == "." || filename == ".." || filename.find_first_of("/\\") != std::string_view::npos) {
    fail("{}:{}: the filename {} is not a plain name; leave out the folders", where, number, shown(filename));
  }
  if (std::any_of(line.begin(), line.end(), is_control)) {
    fail("{}:{}: {} has a control character in it; correct the line", where, number, shown(line));
  }
  return {std::string(filename), std::string(label)};
}

}  // namespace

std::vector<ListedImage> parse_image_list(std::string_view bytes, const std::string& where) {
  const auto header = take_line(bytes);
  if (header != kHeader) {
    fail("{}:1: the first line is {} instead of '{}'; put that line first", where, shown(header), kHeader);
  }
  std::vector<ListedImage> images;
  for (size_t number = 2; !bytes.empty(); ++number) {
    const auto line = take_line(bytes);
    if (line.empty() && bytes.empty()) break;
    images.push_back(parse_line(line, where, number));
  }
  if (images.empty()) fail("{} lists no images; get the file again", where);
  return images;
}

}  // namespace sgdph::lab
