#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sgdph::lab::inspect {

/// A channel-wise parameter and what it is in the network.
struct Block {
  std::string name;
  std::string kind;
  at::Tensor parameter;

  int64_t channels() const { return parameter.numel(); }
};

/// SGD-PH's blocks in the network's order: by layer type, or every 1-D parameter as in the published code, the last
/// one included.
std::vector<Block> blocks_of(const torch::nn::Module& model, bool every_1d);

/// "all"; a number: so many, evenly spread over the network; or names with commas between. In the network's order. A
/// UserError names what is wrong with the text.
std::vector<Block> choose_blocks(const std::vector<Block>& all, const std::string& text);

/// At most `most` of the channels, evenly spread; 0: all.
std::vector<int64_t> spread_channels(int64_t channels, int64_t most);

}  // namespace sgdph::lab::inspect
