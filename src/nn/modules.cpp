#include <sgdph/nn/modules.h>

#include <sgdph/nn/functional.h>

#include "detail/compat.h"

#include <vector>

namespace sgdph::nn {

at::Tensor Conv2dImpl::forward(const at::Tensor& input) {
  const auto* padding = sgdph::detail::get_if<torch::ExpandingArray<2>>(&options.padding());
  const bool zeros = sgdph::detail::get_if<torch::enumtype::kZeros>(&options.padding_mode()) != nullptr;
  if (padding == nullptr || !zeros || input.dim() != 4) return torch::nn::Conv2dImpl::forward(input);
  return functional::conv2d(input, weight, bias, {*options.stride(), **padding, *options.dilation(), options.groups()});
}

std::shared_ptr<torch::nn::Module> Conv2dImpl::clone(const c10::optional<at::Device>& device) const {
  return std::make_shared<Conv2dImpl>(
      dynamic_cast<const torch::nn::Conv2dImpl&>(*torch::nn::Conv2dImpl::clone(device)));
}

namespace detail {

template <class Derived>
void BatchNorm2dBase<Derived>::pretty_print(std::ostream& stream) const {
  const auto& o = this->options;
  stream << std::boolalpha << this->name() << "(" << o.num_features() << ", eps=" << o.eps() << ", momentum=";
  if (o.momentum()) {
    stream << *o.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << o.affine() << ", track_running_stats=" << o.track_running_stats() << ")";
}

template <class Derived>
void BatchNorm2dBase<Derived>::_check_input_dim(const at::Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "expected 4D input (got ", input.dim(), "D input)");
}

template <class Derived>
at::Tensor BatchNorm2dBase<Derived>::normalise(const at::Tensor& input, const at::Tensor& residual, bool relu) {
  _check_input_dim(input);
  const auto& options = this->options;
  functional::BatchNormOptions how;
  how.training = this->is_training() || !options.track_running_stats();
  how.momentum = options.momentum().value_or(0.);
  how.eps = options.eps();
  how.relu = relu;
  // As torch::nn::BatchNorm2d counts and weighs batches.
  if (this->is_training() && options.track_running_stats() && this->num_batches_tracked.defined()) {
    this->num_batches_tracked += 1;
    if (!options.momentum()) how.momentum = 1 / this->num_batches_tracked.template item<double>();
  }
  return functional::batch_norm(input, residual, this->weight, this->bias, this->running_mean, this->running_var, how);
}

template class BatchNorm2dBase<BatchNorm2dImpl>;
template class BatchNorm2dBase<BatchNormReLU2dImpl>;

}  // namespace detail

bool to_channels_last(torch::nn::Module& module) {
  std::vector<at::Tensor> weights;
  bool safe = true;
  module.apply([&](torch::nn::Module& layer) {
    auto* conv = dynamic_cast<torch::nn::Conv2dImpl*>(&layer);
    if (conv == nullptr) return;
    safe = safe && functional::safe_with_channels_last(conv->weight, conv->options.groups());
    weights.push_back(conv->weight);
  });
  if (!safe) return false;
  for (auto& weight : weights) weight.set_data(weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  return true;
}

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  return normalise(input, {}, /*relu=*/false);
}

at::Tensor BatchNormReLU2dImpl::forward(const at::Tensor& input, const at::Tensor& residual) {
  return normalise(input, residual, /*relu=*/true);
}

}  // namespace sgdph::nn
