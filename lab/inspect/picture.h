#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/estimates.h"

namespace sgdph::lab::inspect {

/// What a picture shows of a block: some channels, their couplings, diagonal and row sums.
struct BlockView {
  BlockView(const HessianBlock& hessian, const records::BlockRow& row);

  records::BlockRow row;
  std::vector<int64_t> channels;
  at::Tensor values;  ///< [channels, channels], float64, symmetric
  at::Tensor diagonal;
  at::Tensor row_sum;
};

/// The block as a heat map in SVG: colour for the sign, strength for the logarithm of the absolute value; beside it
/// the diagonal and the row sum on the same scale. Follows the reader's choice of light or dark. Of a block without
/// figures it says why it is not drawn.
std::string block_picture(const BlockView& view, const std::string& place);

/// The view whose off-diagonal ratio is the median of those that can tell; the first that can be drawn if none can.
size_t typical_view(const std::vector<BlockView>& views);

}  // namespace sgdph::lab::inspect
