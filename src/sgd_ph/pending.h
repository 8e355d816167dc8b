#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace sgdph::sgd_ph {

/// A block whose curvature is to be measured.
struct Asked {
  size_t slot = 0;
  at::Tensor parameter;
  at::Tensor gradient;  ///< with a graph; undefined if the loss does not reach the block
  at::Tensor probe;
  at::Tensor guard_signs;  ///< undefined when the shift guard does not ask
};

/// A block's curvature as measured for the step under way.
struct Measured {
  size_t slot = 0;
  at::Tensor estimate;     ///< z * (H z), signed
  bool has_graph = false;  ///< false: the gradient could not be differentiated, and products are zero for that reason
  // For the shift guard; undefined when it does not ask.
  at::Tensor random_product;
  at::Tensor gradient;
  at::ScalarType type = at::kFloat;  ///< the coarsest on the way
};

/// Averages a tensor over ranks, in place.
using Average = std::function<void(at::Tensor&)>;

/// One product for each block that the loss reaches, two where the guard asks.
std::vector<Measured> measure_each(const std::vector<Asked>& asked, bool retain_graph, const Average& average);
/// One product for all of them.
std::vector<Measured> measure_jointly(const std::vector<Asked>& asked, bool retain_graph, const Average& average);

/// What was measured for the step under way; never saved.
class Pending {
 public:
  /// Nothing yet.
  Pending() = default;
  /// `joint`: one product served all blocks. `gradient_scale`: what the guard compares with.
  Pending(std::vector<Measured> blocks, bool joint, double gradient_scale);

  /// Whether there was a measurement, be it of no block because the loss reached none that was due.
  bool measured() const noexcept { return measured_; }
  /// Measured and finite. One that is not stops the step, unless a later backward of that step measures a better one.
  bool usable() const noexcept { return measured_ && non_finite_ == 0; }

  const std::vector<Measured>& blocks() const noexcept { return blocks_; }
  int64_t products() const noexcept { return products_; }
  int64_t non_finite() const noexcept { return non_finite_; }
  double gradient_scale() const noexcept { return gradient_scale_; }

  void forget() { *this = {}; }

 private:
  bool measured_ = false;
  std::vector<Measured> blocks_;
  int64_t products_ = 0;    ///< done, those of the guard included
  int64_t non_finite_ = 0;  ///< values, among estimates and random products
  double gradient_scale_ = 0;
};

}  // namespace sgdph::sgd_ph
