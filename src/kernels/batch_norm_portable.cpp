#include "kernels/batch_norm_jobs.h"

namespace sgdph::kernels {

const BatchNormKernels& portable_batch_norm_kernels() {
  return kKernels;
}

}  // namespace sgdph::kernels
