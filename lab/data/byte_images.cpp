#include "data/byte_images.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace sgdph::lab::data {

ByteImages::ByteImages(Content content) : content_(std::move(content)) {
  const auto& shape = content_.shape;
  TORCH_INTERNAL_ASSERT(content_.pixels.size() == content_.labels.size() * static_cast<size_t>(shape.values()));
  TORCH_INTERNAL_ASSERT(static_cast<int64_t>(content_.normalisation.mean.size()) == shape.channels);
  TORCH_INTERNAL_ASSERT(static_cast<int64_t>(content_.normalisation.deviation.size()) == shape.channels);
  for (size_t c = 0; c < content_.normalisation.mean.size(); ++c) {
    auto& table = tables_.emplace_back();
    for (size_t value = 0; value < table.size(); ++value) {
      table[value] =
          (static_cast<float>(value) / 255 - content_.normalisation.mean[c]) / content_.normalisation.deviation[c];
    }
  }
}

int64_t ByteImages::read(int64_t index, Random* random, float* out) const {
  const auto [channels, height, width] = content_.shape;
  const auto* image = reinterpret_cast<const uint8_t*>(content_.pixels.data()) + index * content_.shape.values();
  int64_t down = 0;
  int64_t right = 0;
  bool flip = false;
  if (random != nullptr) {
    if (content_.padding > 0) {
      down = random->below(2 * content_.padding + 1) - content_.padding;
      right = random->below(2 * content_.padding + 1) - content_.padding;
    }
    flip = random->below(2) == 1;
  }
  // Columns of the crop that the image covers; the rest is border.
  const auto left = std::max<int64_t>(0, -right);
  const auto end = std::min(width, width - right);
  for (int64_t c = 0; c < channels; ++c) {
    const auto& table = tables_[static_cast<size_t>(c)];
    for (int64_t y = 0; y < height; ++y, out += width) {
      const auto row = y + down;
      if (row < 0 || row >= height) {
        std::fill_n(out, width, table[0]);
        continue;
      }
      const auto* from = image + (c * height + row) * width + right;
      if (flip) {
        std::fill_n(out + width - left, left, table[0]);
        for (auto x = left; x < end; ++x) out[width - 1 - x] = table[from[x]];
        std::fill_n(out, width - end, table[0]);
      } else {
        std::fill_n(out, left, table[0]);
        for (auto x = left; x < end; ++x) out[x] = table[from[x]];
        std::fill_n(out + end, width - end, table[0]);
      }
    }
  }
  return content_.labels[static_cast<size_t>(index)];
}

}  // namespace sgdph::lab::data
