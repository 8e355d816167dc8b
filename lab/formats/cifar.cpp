#include "formats/cifar.h"

#include "base/error.h"

namespace sgdph::lab::formats {
namespace {

struct Layout {
  const char* name;
  std::vector<unsigned> bounds;  ///< of each label byte
  std::vector<const char*> labels;
};

const Layout& layout_of(CifarFormat format) {
  static const Layout cifar10{"CIFAR-10", {10}, {"label"}};
  static const Layout cifar100{"CIFAR-100", {20, 100}, {"coarse label", "fine label"}};
  return format == CifarFormat::kCifar10 ? cifar10 : cifar100;
}

}  // namespace

void append_cifar(std::string_view bytes, CifarFormat format, const std::string& where, CifarImages& images) {
  const auto& layout = layout_of(format);
  const size_t label_bytes = layout.bounds.size();
  const size_t record = label_bytes + kCifarPixels;
  if (bytes.empty()) fail("{} is empty; get the file again", where);
  if (bytes.size() % record != 0) {
    fail(
        "{}: its {} bytes are no multiple of a {} record's {}: it is truncated or of another format; get the file "
        "again",
        where, bytes.size(), layout.name, record);
  }
  const size_t count = bytes.size() / record;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < label_bytes; ++k) {
      const unsigned label = static_cast<unsigned char>(bytes[i * record + k]);
      if (label >= layout.bounds[k]) {
        fail(
            "{}: record {} has the {} {}, {} allows 0 to {}: it is damaged or of another format; get the file again",
            where, i, layout.labels[k], label, layout.name, layout.bounds[k] - 1);
      }
    }
  }
  images.labels.reserve(images.labels.size() + count);
  images.pixels.reserve(images.pixels.size() + count * kCifarPixels);
  for (size_t i = 0; i < count; ++i) {
    const auto begin = i * record + label_bytes;
    images.labels.push_back(static_cast<uint8_t>(bytes[begin - 1]));
    images.pixels.append(bytes.substr(begin, kCifarPixels));
  }
}

}  // namespace sgdph::lab::formats
