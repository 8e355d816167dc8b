#include "train/libtorch_version.h"

#include <torch/version.h>

namespace sgdph::lab::train {

std::string libtorch_version() {
  return TORCH_VERSION;
}

}  // namespace sgdph::lab::train
