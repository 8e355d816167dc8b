#include "models/image_model.h"

namespace sgdph::lab::models {

int64_t count_parameters(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace sgdph::lab::models
