#include <sgdph/optimizer.h>

#include <sgdph/detail/fields.h>
#include <sgdph/detail/finite.h>

#include "detail/compat.h"
#include "detail/option_fields.h"
#include "optimizer_impl.h"

#include <c10/core/InferenceMode.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <typeinfo>
#include <unordered_set>

namespace sgdph {
namespace {

using detail::checked;
using detail::fields;
using detail::group_name;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::OptimizerParamState;

using SharedValues = decltype(detail::shared_values(std::declval<detail::Fields&>()));

SharedValues shared_in_effect(const OptimizerOptions& options) {
  const auto copy = options.clone();
  dynamic_cast<detail::CheckedOptions&>(*copy).fill_unset();
  return detail::shared_values(fields(*copy));
}

/// Refuses options that are out of range or of another optimizer, and a parameter that stands there twice.
void check_groups(
    const std::string& name, const OptimizerOptions& defaults, const std::vector<OptimizerParamGroup>& groups) {
  checked(defaults).check(name + ", defaults");
  std::vector<const OptimizerOptions*> all;
  std::unordered_set<const at::TensorImpl*> seen;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& options = groups[i].options();
    TORCH_CHECK(
        typeid(options) == typeid(defaults), group_name(name, i), ": its options are of another optimizer; give it ",
        name, "Options");
    checked(options).check(group_name(name, i));
    all.push_back(&options);
    for (size_t j = 0; j < groups[i].params().size(); ++j) {
      TORCH_CHECK(
          seen.insert(groups[i].params()[j].unsafeGetTensorImpl()).second, group_name(name, i), ": parameter ", j,
          " stands in the optimizer twice; list every parameter once");
    }
  }
  detail::check_shared(name, defaults, all);
}

}  // namespace

void detail::check_shared(
    const std::string& name, const OptimizerOptions& defaults, const std::vector<const OptimizerOptions*>& groups) {
  std::vector<uint64_t> wanted;
  std::vector<uint64_t> found;
  append_raw_values(checked(defaults), wanted, /*only_shared=*/true);
  for (size_t i = 0; i < groups.size(); ++i) {
    found.clear();
    append_raw_values(checked(*groups[i]), found, /*only_shared=*/true);
    if (found == wanted) continue;
    // Saying what is the default anyway is no difference.
    const auto in_effect = shared_in_effect(defaults);
    const auto got = shared_in_effect(*groups[i]);
    for (size_t k = 0; k < got.size(); ++k) {
      TORCH_CHECK(
          got[k].second == in_effect[k].second, group_name(name, i), ": ", got[k].first,
          " is optimizer-wide and must be ", to_string(*in_effect[k].second), " as in the defaults, got ",
          to_string(*got[k].second));
    }
  }
}

OptimizerBase::OptimizerBase(
    const char* name, std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(groups, std::move(defaults)), impl_(std::make_unique<Impl>()) {
  impl_->name = name;
  for (size_t i = 0; i < groups.size(); ++i) detail::keep_options(param_groups_[i], groups[i]);
}

OptimizerBase::OptimizerBase(OptimizerBase&&) noexcept = default;
OptimizerBase::~OptimizerBase() = default;

const std::string& OptimizerBase::name() const noexcept {
  return impl_->name;
}

at::Tensor OptimizerBase::step(LossClosure closure) {
  TORCH_CHECK(
      !c10::InferenceMode::is_enabled(), name(),
      ": a step in InferenceMode would make state that autograd refuses later; leave the mode, or use NoGradGuard");
  at::Tensor loss;
  if (closure) {
    at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  torch::NoGradGuard no_grad;
  check();
  const auto non_finite = detail::count_non_finite(impl_->checked_gradients(param_groups_));
  const auto steps = summary_.step;
  const auto begin = [&](bool applied) {
    summary_ = {};
    summary_.applied = applied;
    summary_.step = steps + (applied ? 1 : 0);
    summary_.non_finite = non_finite;
  };
  begin(non_finite == 0);
  if (!summary_.applied) {
    skip_update();
    return loss;
  }
  try {
    update();
  } catch (...) {
    begin(false);
    throw;
  }
  return loss;
}

std::vector<at::Tensor> OptimizerBase::Impl::checked_gradients(const std::vector<OptimizerParamGroup>& groups) const {
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& parameters = groups[i].params();
    for (size_t j = 0; j < parameters.size(); ++j) {
      if (!moves(parameters[j])) continue;
      const auto& parameter = parameters[j];
      const auto& gradient = parameter.grad();
      const auto where = [&] { return group_name(name, i) + ", parameter " + std::to_string(j); };
      TORCH_CHECK(
          gradient.layout() == at::kStrided, where(), ": sparse gradients are not supported, this one is ",
          gradient.layout(), "; construct the embedding with sparse(false)");
      TORCH_CHECK(
          gradient.sizes() == parameter.sizes(), where(), ": its gradient has shape ", gradient.sizes(),
          ", the parameter ", parameter.sizes(), "; clear the gradient when the parameter changes");
      TORCH_CHECK(
          gradient.device() == parameter.device(), where(), ": its gradient is on ", gradient.device(),
          ", the parameter on ", parameter.device(), "; clear the gradient when the parameter moves");
      TORCH_CHECK(
          c10::canCast(gradient.scalar_type(), parameter.scalar_type()), where(), ": its gradient has type ",
          gradient.scalar_type(), ", the parameter ", parameter.scalar_type());
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

void OptimizerBase::add_param_group(const OptimizerParamGroup& group) {
  auto groups = param_groups_;
  groups.push_back(group);
  if (!group.has_options()) groups.back().set_options(defaults_->clone());
  check_groups(name(), *defaults_, groups);
  Optimizer::add_param_group(group);
  detail::keep_options(param_groups_.back(), group);
  check();
}

void OptimizerBase::check() {
  if (impl_->record.has_options(*defaults_, param_groups_) && impl_->record.has_parameters(param_groups_)) {
    impl_->record.drop_dead(state_);
    return;
  }
  check_groups(name(), *defaults_, param_groups_);
  impl_->record.keep_options();
  notice_changes();
}

void OptimizerBase::notice_changes() {
  if (impl_->record.has_parameters(param_groups_)) return;
  for (const auto& [parameter, reshaped] : impl_->record.keep_parameters(param_groups_, state_)) {
    if (reshaped) {
      erase_state(parameter);
    } else if (find_state(parameter) != nullptr) {
      detail::fit_to_parameter(find_or_make_state(parameter), parameter);
    }
  }
  groups_changed();
  impl_->record.drop_dead(state_);
}

const OptimizerParamState* OptimizerBase::find_state(const at::Tensor& parameter) const {
  const auto* key = impl_->record.key_of(parameter);
  const auto found = state_.find(key != nullptr ? *key : detail::state_key(state_, parameter));
  return found == state_.end() ? nullptr : found->second.get();
}

OptimizerParamState& OptimizerBase::find_or_make_state(const at::Tensor& parameter) {
  const auto* key = impl_->record.key_of(parameter);
  auto& state = state_[key != nullptr ? *key : detail::state_key(state_, parameter)];
  if (!state) state = make_state();
  return *state;
}

void OptimizerBase::erase_state(const at::Tensor& parameter) {
  state_.erase(detail::state_key(state_, parameter));
}

}  // namespace sgdph
