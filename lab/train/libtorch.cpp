#include "train/libtorch.h"

#include "base/error.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdint>

namespace sgdph::lab::train {

std::string libtorch_version() {
  return TORCH_VERSION;
}

void check_device(const std::string& name) {
  try {
    const c10::Device device(name);
    if (device.is_cpu()) return;
    if (!device.is_cuda()) fail("--device: '{}' is not supported; there are cpu, cuda and cuda:N", name);
    const auto count = static_cast<int64_t>(torch::cuda::device_count());
    if (std::max<int64_t>(0, device.index()) >= count) {
      fail("--device: there is no '{}', LibTorch sees {} CUDA devices; use --device cpu", name, count);
    }
  } catch (const c10::Error&) {
    fail("--device: '{}' is not a device; there are cpu, cuda and cuda:N", name);
  }
}

}  // namespace sgdph::lab::train
