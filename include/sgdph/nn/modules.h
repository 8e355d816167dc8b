#pragma once

#include <sgdph/api.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

namespace sgdph::nn {

/// `torch::nn::Conv2d` whose double backward computes what is asked for and no more. Options, parameter names and
/// state are the same; what its operator does not take (padding modes other than zeros, inputs without a batch, other
/// devices and types) it does as LibTorch does.
class SGDPH_API Conv2dImpl : public torch::nn::Conv2dImpl {
 public:
  using torch::nn::Conv2dImpl::Conv2dImpl;
  /// Takes over the parameters of a stock layer; both then share them.
  explicit Conv2dImpl(const torch::nn::Conv2dImpl& layer) : torch::nn::Conv2dImpl(layer) {
    // `Module`, which holds them, is a virtual base in LibTorch 1.x, and so not copied on the way above.
    static_cast<torch::nn::Module&>(*this) = layer;
  }

  at::Tensor forward(const at::Tensor& input);
  std::shared_ptr<torch::nn::Module> clone(const c10::optional<at::Device>& device = c10::nullopt) const override;
};
TORCH_MODULE(Conv2d);

namespace detail {

/// State, names and checks of `torch::nn::BatchNorm2d`, from which LibTorch 1.13 does not let others derive.
template <class Derived>
class SGDPH_API BatchNorm2dBase : public torch::nn::NormImplBase<2, Derived, torch::nn::BatchNormOptions> {
 public:
  using torch::nn::NormImplBase<2, Derived, torch::nn::BatchNormOptions>::NormImplBase;
  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const at::Tensor& input) override;
  at::Tensor normalise(const at::Tensor& input, const at::Tensor& residual, bool relu);
};

}  // namespace detail

/// `torch::nn::BatchNorm2d` with first and second derivatives in fused kernels; same options, names and state.
class SGDPH_API BatchNorm2dImpl : public detail::BatchNorm2dBase<BatchNorm2dImpl> {
 public:
  using BatchNorm2dBase::BatchNorm2dBase;
  at::Tensor forward(const at::Tensor& input);
};
TORCH_MODULE(BatchNorm2d);

/// Batch norm and the rectifier behind it in one: relu(batch_norm(input)), or relu(batch_norm(input) + residual), the
/// end of a residual block. Names and state are those of batch norm.
class SGDPH_API BatchNormReLU2dImpl : public detail::BatchNorm2dBase<BatchNormReLU2dImpl> {
 public:
  using BatchNorm2dBase::BatchNorm2dBase;
  at::Tensor forward(const at::Tensor& input, const at::Tensor& residual = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(BatchNormReLU2d);

/// Stores the weights of all 2-D convolutions (ours and LibTorch's) with their channels last. A convolution with such a
/// weight gives its result in that layout, layers after it keep it, and on CPUs that saves reordering at every
/// convolution. Values, shapes and names stay as they are. Does nothing and returns false if the network has a
/// convolution for which this layout is not safe. `torch::load` restores the layout that was saved: call it afterwards.
SGDPH_API bool to_channels_last(torch::nn::Module& module);

}  // namespace sgdph::nn
