#pragma once

#include <sgdph/api.h>
#include <sgdph/detail/fields.h>

#include <ostream>

namespace sgdph {

/// Which published update rule: the authors' code, or Algorithm 1 as printed (docs/sgd-ph.md compares them).
enum class Rule { Reference, Paper };

/// The vector z of the block's Hessian-vector product; the estimate is z * (H z), element by element.
/// Ones gives the row sum, Rademacher an unbiased estimate of the diagonal, Hadamard's cycle mean the diagonal up to
/// couplings of channels whose indices agree modulo `probe_cycle`.
enum class Probe { Ones, Rademacher, Hadamard };

/// Which blocks are refreshed: one per step in turn; every block, one product each; all blocks in one product; as many
/// in turn as there are ranks, one for each (`CurvatureOptimizer::set_ranks`).
enum class Refresh { Cyclic, All, Joint, Spread };

template <>
struct detail::EnumNames<Rule> {
  static constexpr const char* kNames[] = {"Reference", "Paper"};
};
template <>
struct detail::EnumNames<Probe> {
  static constexpr const char* kNames[] = {"Ones", "Rademacher", "Hadamard"};
};
template <>
struct detail::EnumNames<Refresh> {
  static constexpr const char* kNames[] = {"Cyclic", "All", "Joint", "Spread"};
};

SGDPH_API const char* to_string(Rule rule);
SGDPH_API const char* to_string(Probe probe);
SGDPH_API const char* to_string(Refresh refresh);
SGDPH_API std::ostream& operator<<(std::ostream& out, Rule rule);
SGDPH_API std::ostream& operator<<(std::ostream& out, Probe probe);
SGDPH_API std::ostream& operator<<(std::ostream& out, Refresh refresh);

/// Options of SGDPH. Under Rule::Reference `momentum` and `hessian_momentum` weigh the old value and lie in [0, 1);
/// under Rule::Paper they weigh the new value, as printed, and lie in (0, 1].
struct SGDPH_API SGDPHOptions : public detail::OptionsBase<SGDPHOptions> {
  SGDPHOptions(double lr = 0.01) : lr_(lr) {}

  // Per group.
  TORCH_ARG(double, lr);                                   ///< tau
  TORCH_ARG(double, lr_so) = 1e-3;                         ///< tau_SO, the learning rate of the second-order part
  TORCH_ARG(double, momentum) = 0.9;                       ///< beta
  TORCH_ARG(double, hessian_momentum) = 0.9;               ///< alpha
  TORCH_ARG(double, weight_decay) = 0;                     ///< eta
  TORCH_ARG(double, eps) = 1e-4;                           ///< added to the absolute curvature
  TORCH_ARG(std::optional<double>, curvature_floor) = {};  ///< times the block's mean; unset: 0 (Ones), 0.1 (others)
  TORCH_ARG(bool, second_order) = true;                    ///< false: all parameters of the group are first-order
  TORCH_ARG(bool, master_weights) = false;                 ///< float32 copies of first-order parameters of fewer digits

  // Optimizer-wide: every group must have the same value.
  TORCH_ARG(Rule, rule) = Rule::Reference;
  TORCH_ARG(Probe, probe) = Probe::Ones;
  TORCH_ARG(int64_t, probe_cycle) = 8;              ///< rows of the Hadamard cycle, a power of two
  TORCH_ARG(std::optional<Refresh>, refresh) = {};  ///< unset: Cyclic (Reference), All (Paper)
  TORCH_ARG(int64_t, refresh_every) = 1;            ///< refresh on every n-th step
  TORCH_ARG(bool, shift_guard) = true;              ///< make shift-invariant blocks first-order
  TORCH_ARG(uint64_t, seed) = 0;                    ///< of the random probes

 public:
  double effective_curvature_floor() const;
  Refresh effective_refresh() const;

  void visit(detail::FieldVisitor& visitor) override;
  void fill_unset() override;

 protected:
  void check_more(const std::string& where) const override;
};

}  // namespace sgdph
