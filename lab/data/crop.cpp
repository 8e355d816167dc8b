#include "data/crop.h"

#include <algorithm>
#include <cmath>

namespace sgdph::lab::data {
namespace {

constexpr double kMinArea = 0.08;
constexpr double kMinRatio = 3.0 / 4;
constexpr double kMaxRatio = 4.0 / 3;
constexpr int kTries = 10;

}  // namespace

Box random_resized_crop(int width, int height, Random& random) {
  const double whole = static_cast<double>(width) * height;
  for (int i = 0; i < kTries; ++i) {
    const double area = whole * random.uniform(kMinArea, 1);
    const double ratio = std::exp(random.uniform(std::log(kMinRatio), std::log(kMaxRatio)));
    const auto w = std::lround(std::sqrt(area * ratio));
    const auto h = std::lround(std::sqrt(area / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto y = random.below(height - h + 1);
    const auto x = random.below(width - w + 1);
    return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(w), static_cast<double>(h)};
  }
  const double w = std::min<double>(width, std::max(1.0, std::round(height * kMaxRatio)));
  const double h = std::min<double>(height, std::max(1.0, std::round(width / kMinRatio)));
  return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

Box centre_crop(int width, int height, int shorter, int side) {
  const double longer = std::floor(static_cast<double>(shorter) * std::max(width, height) / std::min(width, height));
  const double resized_width = width < height ? shorter : longer;
  const double resized_height = width < height ? longer : shorter;
  const double x_scale = width / resized_width;
  const double y_scale = height / resized_height;
  return {
      std::nearbyint((resized_width - side) / 2) * x_scale, std::nearbyint((resized_height - side) / 2) * y_scale,
      side * x_scale, side * y_scale};
}

}  // namespace sgdph::lab::data
