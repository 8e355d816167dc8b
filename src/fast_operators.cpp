#include <sgdph/fast_operators.h>

#include "nn/batch_norm_node.h"
#include "nn/conv_node.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>
#include <torch/types.h>

#include <memory>
#include <mutex>

namespace sgdph {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor tensor_of(const OptionalTensor& tensor) {
  return tensor.value_or(at::Tensor());
}

ThreeTensors conv_double_backward(
    const OptionalTensor& for_input, const OptionalTensor& for_weight, const OptionalTensor& for_bias,
    const at::Tensor& gradient, const at::Tensor& weight, const at::Tensor& input, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
    std::array<bool, 3> wanted) {
  auto found = nn::conv_double_backward(
      tensor_of(for_input), tensor_of(for_weight), tensor_of(for_bias), gradient, gradient.sizes(), input, weight,
      {stride.vec(), padding.vec(), dilation.vec(), groups}, transposed, output_padding, wanted);
  return {found[0], found[1], found[2]};
}

/// First derivative: LibTorch's kernel, below autograd. What autograd then records is ours.
ThreeTensors batch_norm_backward(
    const at::Tensor& gradient, const at::Tensor& input, const OptionalTensor& weight,
    const OptionalTensor& running_mean, const OptionalTensor& running_var, const OptionalTensor& save_mean,
    const OptionalTensor& save_invstd, bool train, double eps, std::array<bool, 3> wanted) {
  kernels::BatchNormGradients found;
  kernels::Normalisation normalisation;
  const auto gain = tensor_of(weight);
  for (const auto& tensor : {gradient, input, gain}) {
    // Below autograd a tangent would be lost silently.
    TORCH_CHECK(
        !tensor.defined() || !tensor._fw_grad(/*level=*/0).defined(),
        "Trying to use forward AD with native_batch_norm_backward that does not support it.");
  }
  const bool record = torch::autograd::compute_requires_grad(gradient, input, gain);
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    std::tie(found.x, found.gain, found.shift) = at::native_batch_norm_backward(
        gradient, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, wanted);
    if (record) {
      normalisation.training = train;
      if (train) {
        normalisation.mean = save_mean->to(at::kDouble);
        normalisation.invstd = save_invstd->to(at::kDouble);
      } else {
        // A copy: the statistics may move on before the second derivative.
        normalisation.mean = running_mean->to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
        normalisation.invstd = (running_var->to(at::kDouble) + eps).rsqrt();
      }
    }
  }
  if (record) nn::record_batch_norm_backward(found, gradient, input, gain, normalisation, eps);
  return {found.x, found.gain, found.shift};
}

std::mutex& mutex() {
  static std::mutex mutex;
  return mutex;
}

/// The registration, which ends with the object.
std::unique_ptr<torch::Library>& registration() {
  static std::unique_ptr<torch::Library> library;
  return library;
}

}  // namespace

void install_fast_operators() {
  const std::lock_guard lock(mutex());
  if (registration() != nullptr) return;
  auto library =
      std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__, __LINE__);
  library->impl("_convolution_double_backward", TORCH_FN(conv_double_backward));
  library->impl("native_batch_norm_backward", TORCH_FN(batch_norm_backward));
  registration() = std::move(library);
}

void remove_fast_operators() {
  const std::lock_guard lock(mutex());
  registration().reset();
}

bool fast_operators_installed() {
  const std::lock_guard lock(mutex());
  return registration() != nullptr;
}

}  // namespace sgdph
