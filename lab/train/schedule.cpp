#include "train/schedule.h"

#include "base/error.h"

#include <fmt/ranges.h>
#include <sgdph/schedulers.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace sgdph::lab::train {
namespace {

int64_t to_steps(double epochs, int64_t steps_per_epoch) {
  return std::llround(epochs * static_cast<double>(steps_per_epoch));
}

}  // namespace

void check_schedule(const settings::Settings& s) {
  if (s.lr_scheduler == "multistep") {
    const auto& epochs = s.lr_milestones;
    if (epochs.empty()) fail("--lr-scheduler multistep: give the epochs with --lr-milestones");
    if (epochs.front() < 1 ||
        std::adjacent_find(epochs.begin(), epochs.end(), std::greater_equal<>()) != epochs.end()) {
      fail("--lr-milestones: the epochs must be positive and rise, got {}", fmt::join(epochs, ","));
    }
  }
  if ((s.lr_scheduler == "cosine" || s.lr_scheduler == "linear") && s.lr_min > s.lr()) {
    fail("--lr-min: {} is above the learning rate {}", s.lr_min, s.lr());
  }
  if (s.lr_warmup_epochs >= static_cast<double>(s.epochs)) {
    fail("--lr-warmup-epochs: {} leaves nothing of {} epochs", s.lr_warmup_epochs, s.epochs);
  }
}

std::unique_ptr<Scheduler> make_schedule(
    torch::optim::Optimizer& optimizer, const settings::Settings& s, int64_t steps_per_epoch) {
  const Warmup warmup{to_steps(s.lr_warmup_epochs, steps_per_epoch), s.lr_warmup_decay};
  if (s.lr_scheduler == "cosine") {
    return std::make_unique<CosineLR>(optimizer, s.epochs * steps_per_epoch - warmup.steps, s.lr_min, warmup);
  }
  if (s.lr_scheduler == "linear") {
    return std::make_unique<LinearLR>(optimizer, s.epochs * steps_per_epoch - warmup.steps, s.lr_min, warmup);
  }
  if (s.lr_scheduler == "step") {
    return std::make_unique<StepLR>(optimizer, s.lr_step_size * steps_per_epoch, s.lr_gamma, warmup);
  }
  std::vector<int64_t> steps;  // none: constant
  if (s.lr_scheduler == "multistep") {
    for (const auto epoch : s.lr_milestones) steps.push_back(epoch * steps_per_epoch);
  }
  return std::make_unique<MultiStepLR>(optimizer, steps, s.lr_gamma, warmup);
}

}  // namespace sgdph::lab::train
