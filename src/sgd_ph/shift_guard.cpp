#include "sgd_ph/shift_guard.h"

#include "sgd_ph/probes.h"

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace sgdph::sgd_ph {
namespace {

constexpr double kEpsilons = 1e3;
// A thousand epsilons of a half-precision type are no small number.
constexpr double kLargestTolerance = 1e-2;
/// A mark is taken back by a ratio that is so many times the one that gave it.
constexpr double kToTakeBack = 10;

double machine_epsilon(at::ScalarType type) {
  if (type == at::kDouble) return std::numeric_limits<double>::epsilon();
  if (type == at::kHalf) return 0x1p-10;
  if (type == at::kBFloat16) return 0x1p-7;
  return std::numeric_limits<float>::epsilon();
}

double length(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).norm().item<double>();
}

/// The next of 1, 2, 4, 8, ... after `turn`.
int64_t next_power(int64_t turn) {
  int64_t power = 1;
  while (power <= turn) power *= 2;
  return power;
}

}  // namespace

bool guard_is_on(const SGDPHOptions& options) {
  return options.shift_guard() && probe_kind(options.probe()).guarded;
}

bool guard_looks(const SGDPHOptions& options, const SGDPHParamState* state) {
  return guard_is_on(options) && (state == nullptr || state->turns() >= state->next_look());
}

bool is_waiting(Finding finding) {
  return finding == Finding::NoEvidence || finding == Finding::Suspect || finding == Finding::ShiftInvariant;
}

at::Tensor mixed_signs_like(const at::Tensor& parameter, ProbePlace place) {
  for (;; ++place.count) {
    auto signs = rademacher_like(parameter, place);
    const auto sum = signs.sum().abs().item<double>();
    if (parameter.numel() < 2 || sum < static_cast<double>(parameter.numel())) return signs;
  }
}

at::ScalarType coarsest_type(const at::Tensor& gradient) {
  auto coarsest = gradient.scalar_type();
  std::vector<torch::autograd::Node*> open{gradient.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (size_t i = 0; i < node->num_inputs(); ++i) {
      const auto type = c10::typeMetaToScalarType(node->input_metadata(i).dtype());
      if (at::isFloatingType(type) && machine_epsilon(type) > machine_epsilon(coarsest)) coarsest = type;
    }
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return coarsest;
}

Look look_at(
    const at::Tensor& row_sum, const at::Tensor& random_product, const at::Tensor& gradient, double gradient_scale,
    at::ScalarType type) {
  return {length(row_sum), length(random_product), length(gradient), row_sum.numel(), gradient_scale, type};
}

double tolerance(at::ScalarType type) {
  return std::min(kEpsilons * machine_epsilon(type), kLargestTolerance);
}

bool has_evidence(const Look& look) {
  const double noise = tolerance(look.type) * look.gradient_scale * std::sqrt(static_cast<double>(look.channels));
  return look.product > 0 && (look.product >= noise || look.gradient >= noise);
}

void take_look(SGDPHParamState& state, const Look& look) {
  const auto turn = state.turns();
  const bool marked = state.shift_invariant();
  const double limit = tolerance(look.type) * look.product;
  if (!has_evidence(look)) {
    if (!marked) state.finding(Finding::NoEvidence);
    state.next_look(marked ? turn + kTurnsBetweenLooks : next_power(turn));
  } else if (look.row_sum < (marked ? kToTakeBack * limit : limit)) {
    const bool again = marked || state.finding() == Finding::Suspect;
    state.finding(again ? Finding::ShiftInvariant : Finding::Suspect);
    state.next_look(again ? turn + kTurnsBetweenLooks : turn + 1);
  } else {
    state.finding(Finding::Curved);
    state.next_look(kNever);
  }
  state.turns(turn + 1);
}

void miss_look(SGDPHParamState& state) {
  if (is_waiting(state.finding())) {
    state.next_look(state.turns() + 1);
  } else {
    state.finding(Finding::NotMeasurable);
  }
  state.turns(state.turns() + 1);
}

}  // namespace sgdph::sgd_ph
