#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "inspect/estimates.h"
#include "inspect/hessian_block.h"
#include "records/inspect_record.h"

namespace sgdph::lab::inspect {

records::Agreement agreement(const at::Tensor& numbers, const at::Tensor& diagonal);

records::BlockRow block_row(const HessianBlock& hessian, const std::vector<HeldEstimate>& held);

}  // namespace sgdph::lab::inspect
