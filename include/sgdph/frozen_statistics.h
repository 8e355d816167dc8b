#pragma once

#include <sgdph/api.h>

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace sgdph {

/// While it lives, batch norm layers of a network in training mode normalise by the batch as usual and leave their
/// running statistics and batch counts alone: for the curvature of a slice of the batch, say.
///
///   loss.backward();
///   {
///     sgdph::FrozenStatistics frozen(*model);
///     optimizer.update_curvature(cross_entropy(model->forward(x.narrow(0, 0, n / 8)), y.narrow(0, 0, n / 8)));
///   }
///   optimizer.step();
///
/// The network must outlive it; not for use by two threads on one network at once.
class SGDPH_API FrozenStatistics {
 public:
  explicit FrozenStatistics(torch::nn::Module& module);
  template <class Contained>
  explicit FrozenStatistics(const torch::nn::ModuleHolder<Contained>& module)
      : FrozenStatistics(static_cast<torch::nn::Module&>(*module.ptr())) {}
  ~FrozenStatistics();
  FrozenStatistics(const FrozenStatistics&) = delete;
  FrozenStatistics& operator=(const FrozenStatistics&) = delete;

 private:
  std::vector<std::function<void()>> restore_;
};

}  // namespace sgdph
