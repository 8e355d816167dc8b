#pragma once

// Layers with cheap second derivatives, in place of torch::nn's.

#include <sgdph/nn/functional.h>
#include <sgdph/nn/modules.h>
