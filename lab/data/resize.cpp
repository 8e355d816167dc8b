#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sgdph::lab::data {
namespace {

constexpr double kMinArea = 0.08;
constexpr double kMinRatio = 3.0 / 4;
constexpr double kMaxRatio = 4.0 / 3;
constexpr int kTries = 10;

// The compiler's own vectors: SSE, NEON or plain code, with the same results.
using Bytes4 = uint8_t __attribute__((vector_size(4)));
using Float4 = float __attribute__((vector_size(16)));

/// The inputs of each output along one side: `taps` weights from input `first` on.
struct Filter {
  struct Output {
    int first = 0;
    int taps = 0;
  };
  std::vector<Output> outputs;
  std::vector<float> weights;  ///< `stride` for each output
  int stride = 0;

  const float* weights_of(size_t output) const { return weights.data() + output * static_cast<size_t>(stride); }
};

/// Inputs are confined to [low, high).
void make_filter(double begin, double length, int outputs, int low, int high, Filter& filter) {
  const double scale = length / outputs;
  const double support = std::max(1.0, scale);
  filter.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  filter.outputs.resize(static_cast<size_t>(outputs));
  filter.weights.assign(static_cast<size_t>(outputs) * static_cast<size_t>(filter.stride), 0);
  for (size_t i = 0; i < filter.outputs.size(); ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    // At least one input, also where rounding pushes the centre onto the rim.
    const int first = std::clamp(static_cast<int>(std::floor(centre - support + 0.5)), low, high - 1);
    const int end = std::clamp(static_cast<int>(std::floor(centre + support + 0.5)), first + 1, high);
    filter.outputs[i] = {first, end - first};
    auto* weights = filter.weights.data() + i * static_cast<size_t>(filter.stride);
    double sum = 0;
    for (int k = 0; k < end - first; ++k) {
      const double weight = std::max(0.0, 1 - std::abs((first + k + 0.5 - centre) / support));
      weights[k] = static_cast<float>(weight);
      sum += weight;
    }
    for (int k = 0; k < end - first; ++k) weights[k] = static_cast<float>(weights[k] / sum);
  }
}

/// Kept by each thread: allocating them anew for each image costs more than a small image's arithmetic.
struct Scratch {
  Filter columns;
  Filter rows;
  std::vector<Float4> line;     ///< an input row as floats
  std::vector<Float4> resized;  ///< the input rows, resized horizontally
};

void resize_horizontally(const PixelImage& image, int first_row, int end_row, int low, int high, Scratch& scratch) {
  const auto& filter = scratch.columns;
  const auto outputs = filter.outputs.size();
  scratch.line.resize(static_cast<size_t>(image.width));
  scratch.resized.resize(static_cast<size_t>(end_row - first_row) * outputs);
  auto* out = scratch.resized.data();
  auto* line = scratch.line.data();
  for (int y = first_row; y < end_row; ++y, out += outputs) {
    const auto* row = image.pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(image.width) * 4;
    for (int x = low; x < high; ++x) {
      Bytes4 pixel;
      std::memcpy(&pixel, row + static_cast<size_t>(x) * 4, sizeof pixel);
      line[x] = __builtin_convertvector(pixel, Float4);
    }
    for (size_t i = 0; i < outputs; ++i) {
      const auto [first, taps] = filter.outputs[i];
      const auto* weights = filter.weights_of(i);
      Float4 sum = line[first] * weights[0];
      for (int k = 1; k < taps; ++k) sum += line[first + k] * weights[k];
      out[i] = sum;
    }
  }
}

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

void resize(
    const PixelImage& image, const Box& box, const ResizeOptions& options, const Normalisation& normalisation,
    float* out) {
  thread_local Scratch scratch;
  Box limits{0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
  if (options.confined) limits = box;
  const int left = std::max(0, static_cast<int>(std::floor(limits.x)));
  const int top = std::max(0, static_cast<int>(std::floor(limits.y)));
  const int right = std::clamp(static_cast<int>(std::ceil(limits.x + limits.width)), left + 1, image.width);
  const int bottom = std::clamp(static_cast<int>(std::ceil(limits.y + limits.height)), top + 1, image.height);
  make_filter(box.x, box.width, options.side, left, right, scratch.columns);
  make_filter(box.y, box.height, options.side, top, bottom, scratch.rows);
  const int first_row = scratch.rows.outputs.front().first;
  const int end_row = scratch.rows.outputs.back().first + scratch.rows.outputs.back().taps;
  resize_horizontally(image, first_row, end_row, left, right, scratch);

  Float4 factor{};
  Float4 offset{};
  for (size_t c = 0; c < 3; ++c) {
    factor[c] = 1 / (255 * normalisation.deviation[c]);
    offset[c] = -normalisation.mean[c] / normalisation.deviation[c];
  }
  const auto side = static_cast<size_t>(options.side);
  for (size_t y = 0; y < side; ++y) {
    const auto [first, taps] = scratch.rows.outputs[y];
    const auto* weights = scratch.rows.weights_of(y);
    const auto* inputs = scratch.resized.data() + static_cast<size_t>(first - first_row) * side;
    auto* red = out + y * side;
    auto* green = red + side * side;
    auto* blue = green + side * side;
    for (size_t x = 0; x < side; ++x) {
      Float4 sum = inputs[x] * weights[0];
      for (int k = 1; k < taps; ++k) sum += inputs[static_cast<size_t>(k) * side + x] * weights[k];
      sum = sum * factor + offset;
      const auto to = options.flip ? side - 1 - x : x;
      red[to] = sum[0];
      green[to] = sum[1];
      blue[to] = sum[2];
    }
  }
}

}  // namespace sgdph::lab::data
