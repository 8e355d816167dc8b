#include <sgdph/sgd_ph_options.h>

#include "detail/option_check.h"

namespace sgdph {

const char* to_string(Rule rule) {
  switch (rule) {
    case Rule::Reference: return "Reference";
    case Rule::Paper: return "Paper";
  }
  return "unknown";
}

const char* to_string(Probe probe) {
  switch (probe) {
    case Probe::Ones: return "Ones";
    case Probe::Rademacher: return "Rademacher";
    case Probe::Hadamard: return "Hadamard";
  }
  return "unknown";
}

const char* to_string(Refresh refresh) {
  switch (refresh) {
    case Refresh::Cyclic: return "Cyclic";
    case Refresh::All: return "All";
    case Refresh::Joint: return "Joint";
  }
  return "unknown";
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
  return curvature_floor().value_or(probe() == Probe::Ones ? 0.0 : 0.1);
}

Refresh SGDPHOptions::effective_refresh() const {
  return refresh().value_or(rule() == Rule::Reference ? Refresh::Cyclic : Refresh::All);
}

void SGDPHOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_);
  visitor("lr_so", lr_so_);
  visitor("momentum", momentum_);
  visitor("hessian_momentum", hessian_momentum_);
  visitor("weight_decay", weight_decay_);
  visitor("eps", eps_);
  visitor("curvature_floor", curvature_floor_);
  visitor("second_order", second_order_);
  visitor("rule", rule_);
  visitor("probe", probe_);
  visitor("probe_cycle", probe_cycle_);
  visitor("refresh", refresh_);
  visitor("refresh_every", refresh_every_);
  visitor("shift_guard", shift_guard_);
  visitor("seed", seed_);
}

void SGDPHOptions::check(const std::string& where) const {
  const detail::OptionCheck option{where};
  option.enumerator("rule", rule(), Rule::Paper);
  option.enumerator("probe", probe(), Probe::Hadamard);
  option.enumerator("refresh", effective_refresh(), Refresh::Joint);
  option.at_least("lr", lr(), 0);
  option.at_least("lr_so", lr_so(), 0);
  option.at_least("weight_decay", weight_decay(), 0);
  option.positive("eps", eps());
  if (curvature_floor()) option.at_least("curvature_floor", *curvature_floor(), 0);
  for (const auto& [name, value] :
       {std::pair("momentum", momentum()), std::pair("hessian_momentum", hessian_momentum())}) {
    if (rule() == Rule::Reference) {
      option.fraction(name, value);
    } else {
      TORCH_CHECK(
          value > 0 && value <= 1, where, ": ", name, " must lie in (0, 1] under Rule::Paper, where it weighs the new ",
          "value (1 turns averaging off), got ", value);
    }
  }
  const auto cycle = probe_cycle();
  TORCH_CHECK(cycle > 0 && (cycle & (cycle - 1)) == 0, where, ": probe_cycle must be a power of two, got ", cycle);
  TORCH_CHECK(refresh_every() >= 1, where, ": refresh_every must be at least 1, got ", refresh_every());
  TORCH_CHECK(
      effective_refresh() != Refresh::Joint || probe() == Probe::Rademacher, where,
      ": refresh Joint needs probe Rademacher, got ", probe(), "; with other probes the blocks would add up");
}

}  // namespace sgdph
