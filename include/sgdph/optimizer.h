#pragma once

#include <sgdph/api.h>
#include <sgdph/detail/fields.h>
#include <sgdph/step_summary.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sgdph::detail {
class OptimizerFields;
}

namespace sgdph {

/// What `load_matching` did.
struct LoadReport {
  int64_t taken = 0;                 ///< parameters that have the archive's state now
  std::vector<std::string> skipped;  ///< a line for each parameter, of either side, that has no match, and why
};

/// What all our optimizers share and LibTorch 1.13's do not have: every option of every group is validated, a parameter
/// stands in one group only, and an archive restores *everything*, options included. Loading checks the whole archive
/// before it changes anything.
class SGDPH_API OptimizerBase : public torch::optim::Optimizer {
 public:
  OptimizerBase(OptimizerBase&& other) noexcept;
  ~OptimizerBase() override;

  /// As LibTorch's: the closure clears the gradients, computes the loss, runs backward and returns the loss. A gradient
  /// that is not finite leaves parameters and state as they were, and `last_step()` says so; one that does not fit its
  /// parameter is an error before anything has changed.
  at::Tensor step(LossClosure closure = nullptr) final;

  /// Validates the group against the optimizer before it is added.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  /// What the last step did.
  const StepSummary& last_step() const noexcept { return summary_; }
  /// A line about what the optimizer made of its parameters; empty if there is nothing to say.
  virtual std::string describe() const { return ""; }

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
  /// Takes what fits from the archive of a model that has changed since, for fine-tuning: the states of parameters that
  /// have the same name there or, where either side knows no names, the same place in the same group, and the same
  /// shape. The rest starts empty; options stay this optimizer's own.
  LoadReport load_matching(torch::serialize::InputArchive& archive);

 protected:
  OptimizerBase(
      const char* name, std::vector<torch::optim::OptimizerParamGroup> groups,
      std::unique_ptr<torch::optim::OptimizerOptions> defaults);

  /// One update of the parameters, called without gradient recording and after `check`; all gradients are finite and
  /// fit their parameters.
  virtual void update() = 0;
  /// Called in place of `update` when a gradient is not finite: what was gathered for this step is to be forgotten.
  virtual void skip_update() {}
  virtual std::unique_ptr<torch::optim::OptimizerParamState> make_state() const = 0;

  /// What belongs to no single parameter: a copy to save or to load into, and the return of a loaded one.
  virtual std::unique_ptr<detail::Fields> progress() const { return nullptr; }
  virtual void set_progress(detail::Fields&) {}
  /// Refuses loaded progress that does not fit this optimizer, before anything is changed.
  virtual void check_progress(const detail::Fields&) const {}

  /// The names of all parameters in progress that was saved, empty texts where one has none.
  virtual std::vector<std::string> names_in(const detail::Fields& /*progress*/) const { return {}; }
  /// Takes from progress that was saved with other parameters what holds for any.
  virtual void set_matching_progress(const detail::Fields&) {}

  /// The parameter's name for messages; empty if none is known.
  virtual std::string name_of(const at::Tensor& /*parameter*/) const { return ""; }

  /// Called when groups or parameters have been added, and after loading.
  virtual void groups_changed() {}

  /// Validates all options and the set of parameters. Derived constructors call it; so does every step, because options
  /// are open to change through `param_groups()` and `torch::optim::Optimizer::add_param_group` is not virtual. What
  /// has not changed since the last time is not looked at again.
  void check();

  /// Calls `groups_changed` if parameters have been added or exchanged since the last time.
  void notice_changes();

  const std::string& name() const noexcept;

  StepSummary summary_;  ///< `update` finds it as that of a step applied

  /// Whether a step moves the parameter: it has a gradient and is not frozen. (LibTorch's optimizers keep moving a
  /// parameter that is frozen on the way, by momentum and decay.)
  static bool moves(const at::Tensor& parameter) { return parameter.requires_grad() && parameter.grad().defined(); }

  /// Calls `visit(options, parameter)` for every parameter that moves.
  template <class Options, class Visit>
  void for_each_gradient(Visit&& visit) {
    for (auto& group : param_groups_) {
      const auto& options = static_cast<const Options&>(group.options());
      for (auto& parameter : group.params()) {
        if (moves(parameter)) visit(options, parameter);
      }
    }
  }

  /// The state of a parameter, made when absent.
  template <class State>
  State& state_of(const at::Tensor& parameter) {
    return static_cast<State&>(find_or_make_state(parameter));
  }
  void erase_state(const at::Tensor& parameter);
  /// The state of a parameter, or null.
  template <class State>
  const State* find_state_of(const at::Tensor& parameter) const {
    return static_cast<const State*>(find_state(parameter));
  }

 private:
  friend class detail::OptimizerFields;
  torch::optim::OptimizerParamState& find_or_make_state(const at::Tensor& parameter);
  const torch::optim::OptimizerParamState* find_state(const at::Tensor& parameter) const;
  /// Replaces states and, unless it is null, progress by these once all are found to fit.
  void restore(
      std::vector<std::pair<at::Tensor, std::unique_ptr<torch::optim::OptimizerParamState>>> states,
      detail::Fields* progress);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// An optimizer with options and parameter states of these types: brings the constructors and makes the states. `Self`
/// has its name in `kName`. One that overrides `groups_changed` calls it in constructors of its own.
template <class Self, class Options, class State, class Base = OptimizerBase>
class SGDPH_API OptimizerOf : public Base {
 public:
  explicit OptimizerOf(std::vector<torch::optim::OptimizerParamGroup> groups, Options defaults = {})
      : Base(Self::kName, std::move(groups), std::make_unique<Options>(std::move(defaults))) {
    this->check();
  }
  explicit OptimizerOf(std::vector<at::Tensor> parameters, Options defaults = {})
      : OptimizerOf(
            std::vector<torch::optim::OptimizerParamGroup>{torch::optim::OptimizerParamGroup(std::move(parameters))},
            std::move(defaults)) {}

 protected:
  std::unique_ptr<torch::optim::OptimizerParamState> make_state() const override { return std::make_unique<State>(); }
};

}  // namespace sgdph
