#include "inspect/guard.h"

#include "train/compat.h"

#include <sgdph/sgd_ph.h>

#include <memory>
#include <utility>

namespace sgdph::lab::inspect {
namespace {

/// The guard's notice says "from now on", and here is no training.
class NoWarnings : public train::WarningHandler {
 public:
  void say(const std::string&) override {}
};

}  // namespace

GuardFinding ask_guard(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, const at::Tensor& block) {
  // Paper: refreshes every block at once, and has no last block that is excluded.
  const auto options = SGDPHOptions(0).rule(Rule::Paper);
  std::vector<at::Tensor> others;
  for (const auto& parameter : parameters) {
    if (!parameter.is_same(block)) others.push_back(parameter);
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{block}, std::make_unique<SGDPHOptions>(options));
  if (!others.empty()) {
    groups.emplace_back(std::move(others), std::make_unique<SGDPHOptions>(SGDPHOptions(options).second_order(false)));
  }
  SGDPH optimizer(std::move(groups), options);
  NoWarnings silent;
  const train::WarningGuard guard(&silent);
  optimizer.update_curvature(loss);
  optimizer.step();  // without gradients nothing moves
  GuardFinding finding;
  const auto* state = optimizer.param_state(block);
  // One look, and the optimizer would want two; what is not above rounding is no row sum either.
  finding.shift_invariant =
      state != nullptr && (state->finding() == Finding::Suspect || state->finding() == Finding::NoEvidence);
  if (!optimizer.last_step().blocks_refreshed.empty()) {
    finding.row_sum = optimizer.last_step().blocks_refreshed.front().estimate;
  }
  return finding;
}

}  // namespace sgdph::lab::inspect
