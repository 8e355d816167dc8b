#include <sgdph/sgd_ph_options.h>

#include "sgd_ph/probes.h"

namespace sgdph {
namespace {

template <class Enum>
const char* name_of(Enum value) {
  const auto number = static_cast<size_t>(value);
  const detail::Names names = detail::EnumNames<Enum>::kNames;
  return number < names.count ? names.first[number] : "unknown";
}

}  // namespace

const char* to_string(Rule rule) {
  return name_of(rule);
}
const char* to_string(Probe probe) {
  return name_of(probe);
}
const char* to_string(Refresh refresh) {
  return name_of(refresh);
}
std::ostream& operator<<(std::ostream& out, Rule rule) {
  return out << to_string(rule);
}
std::ostream& operator<<(std::ostream& out, Probe probe) {
  return out << to_string(probe);
}
std::ostream& operator<<(std::ostream& out, Refresh refresh) {
  return out << to_string(refresh);
}

double SGDPHOptions::effective_curvature_floor() const {
  return curvature_floor().value_or(sgd_ph::probe_kind(probe()).default_floor);
}

Refresh SGDPHOptions::effective_refresh() const {
  return refresh().value_or(rule() == Rule::Reference ? Refresh::Cyclic : Refresh::All);
}

void SGDPHOptions::fill_unset() {
  curvature_floor_ = effective_curvature_floor();
  refresh_ = effective_refresh();
}

void SGDPHOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_, {"learning rate", at_least(0)});
  visitor("lr_so", lr_so_, {"tau_SO, the learning rate of the second-order part", at_least(0)});
  visitor(
      "momentum", momentum_, {"beta, of the gradient; weighs the old value, under rule paper the new", between(0, 1)});
  visitor(
      "hessian_momentum", hessian_momentum_,
      {"alpha, of the curvature; weighs the old value, under rule paper the new", between(0, 1)});
  visitor("weight_decay", weight_decay_, {"weight decay", at_least(0)});
  visitor("eps", eps_, {"added to the absolute curvature", above(0)});
  visitor(
      "curvature_floor", curvature_floor_,
      {"smallest curvature, times the block's mean; unset: 0 with probe ones, 0.1 with others", at_least(0)});
  visitor("second_order", second_order_, {"false: all parameters of the group take the first-order step"});
  if (visitor.format() >= 2) {
    visitor(
        "master_weights", master_weights_,
        {"keep float32 copies of first-order parameters in half precision and step those; blocks have them anyway"});
  }
  visitor("rule", rule_, detail::shared("the update rule of the authors' code, or Algorithm 1 as printed"));
  visitor("probe", probe_, detail::shared("the vector z of the block's Hessian product"));
  visitor("probe_cycle", probe_cycle_, detail::shared("rows of the Hadamard cycle, a power of two", at_least(1)));
  visitor(
      "refresh", refresh_,
      detail::shared("which blocks a step refreshes: one in turn, every one, all in one product, one in turn for each "
                     "rank; unset: cyclic under rule reference, all under paper"));
  visitor("refresh_every", refresh_every_, detail::shared("refresh on every n-th step", at_least(1)));
  visitor("shift_guard", shift_guard_, detail::shared("shift-invariant blocks become first-order"));
  visitor("seed", seed_, detail::shared("of the random probes"));
}

void SGDPHOptions::check_more(const std::string& where) const {
  for (const auto& [name, value] :
       {std::pair("momentum", momentum()), std::pair("hessian_momentum", hessian_momentum())}) {
    if (rule() == Rule::Reference) {
      TORCH_CHECK(value < 1, where, ": ", name, " must lie in [0, 1) under Rule::Reference, got ", value);
    } else {
      TORCH_CHECK(
          value > 0, where, ": ", name, " must lie in (0, 1] under Rule::Paper, where it weighs the new ",
          "value (1 turns averaging off), got ", value);
    }
  }
  const auto cycle = probe_cycle();
  TORCH_CHECK((cycle & (cycle - 1)) == 0, where, ": probe_cycle must be a power of two, got ", cycle);
  TORCH_CHECK(
      effective_refresh() != Refresh::Joint || sgd_ph::probe_kind(probe()).may_join, where,
      ": refresh Joint needs probe Rademacher, got ", probe(), "; with other probes the blocks would add up");
  TORCH_CHECK(
      effective_refresh() != Refresh::Spread || sgd_ph::probe_kind(probe()).averages_signed, where,
      ": refresh Spread needs probe Rademacher or Hadamard, got ", probe(),
      "; it averages absolute values, and those of single ranks' batches are too large");
}

}  // namespace sgdph
