#include "formats/image_list.h"

#include "base/error.h"
#include "base/escape.h"
#include "formats/csv.h"

namespace sgdph::lab::formats {
namespace {

const std::vector<std::string>& columns() {
  static const std::vector<std::string> names{"filename", "label"};
  return names;
}

/// In quotes, with escapes: a message stays one readable line whatever the file holds.
std::string shown(std::string_view text) {
  constexpr size_t kShown = 80;
  return fmt::format("{:?}{}", text.substr(0, kShown), text.size() > kShown ? "..." : "");
}

ListedImage listed_image(const CsvReader& reader) {
  const auto& fields = reader.fields();
  if (fields.size() != columns().size()) {
    fail("{}: {} is not of the form 'filename,label'; correct the line", reader.place(), shown(reader.line()));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) fail("{}: the {} is empty; correct the line", reader.place(), columns()[i]);
  }
  const auto& filename = fields[0];
  // The name is appended to the image folder: it must not lead out of it.
  if (filename == "." || filename == ".." || filename.find_first_of("/\\") != std::string::npos) {
    fail("{}: the filename {} is not a plain name; leave out the folders", reader.place(), shown(filename));
  }
  if (has_control_character(reader.line())) {
    fail("{}: {} has a control character in it; correct the line", reader.place(), shown(reader.line()));
  }
  return {filename, fields[1]};
}

}  // namespace

std::vector<ListedImage> parse_image_list(std::string_view bytes, const std::string& where) {
  CsvReader reader(bytes, where);
  if (!reader.next() || reader.fields() != columns()) {
    fail("{}:1: the first line is {} instead of 'filename,label'; put that line first", where, shown(reader.line()));
  }
  std::vector<ListedImage> images;
  while (reader.next()) images.push_back(listed_image(reader));
  if (images.empty()) fail("{} lists no images; get the file again", where);
  return images;
}

}  // namespace sgdph::lab::formats
