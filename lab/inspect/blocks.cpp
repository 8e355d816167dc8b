#include "inspect/blocks.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "tables/statistics.h"

#include <sgdph/sgd_ph.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <optional>

namespace sgdph::lab::inspect {

std::vector<Block> blocks_of(const torch::nn::Module& model, bool every_1d) {
  std::vector<Block> blocks;
  const SGDPH optimizer(model);
  for (const auto& entry : optimizer.partition().entries) {
    const bool wanted = every_1d ? entry.parameter.dim() == 1 : entry.second_order;
    if (wanted && entry.parameter.requires_grad()) blocks.push_back({entry.name, entry.reason, entry.parameter});
  }
  return blocks;
}

std::vector<Block> choose_blocks(const std::vector<Block>& all, const std::string& text) {
  if (all.empty()) fail("the network has no blocks: neither norm layers, nor weight norm, nor biases of convolutions");
  if (text == "all") return all;
  std::vector<Block> chosen;
  if (const auto count = number_from<int64_t>(text)) {
    if (*count < 1) fail("--blocks: takes a number from 1 on, or names, got '{}'", text);
    for (const auto place : tables::evenly_spread(all.size(), static_cast<size_t>(*count)))
      chosen.push_back(all[place]);
    return chosen;
  }
  const auto wanted = words_between_commas(text);
  for (const auto& word : wanted) find_named(all, "block", word);
  check_distinct("--blocks", wanted);
  for (const auto& block : all) {
    if (std::find(wanted.begin(), wanted.end(), block.name) != wanted.end()) chosen.push_back(block);
  }
  return chosen;
}

std::vector<int64_t> spread_channels(int64_t channels, int64_t most) {
  std::vector<int64_t> chosen;
  const auto count = most == 0 ? channels : std::min(channels, most);
  for (const auto place : tables::evenly_spread(static_cast<size_t>(channels), static_cast<size_t>(count))) {
    chosen.push_back(static_cast<int64_t>(place));
  }
  return chosen;
}

}  // namespace sgdph::lab::inspect
