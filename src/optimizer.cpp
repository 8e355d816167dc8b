#include <sgdph/optimizer.h>

#include <sgdph/detail/fields.h>
#include <sgdph/detail/finite.h>

#include "detail/compat.h"
#include "detail/optimizer_record.h"
#include "detail/option_fields.h"

#include <c10/core/InferenceMode.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <typeinfo>
#include <unordered_set>

namespace sgdph {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::OptimizerParamState;

const detail::CheckedOptions& checked(const OptimizerOptions& options) {
  return dynamic_cast<const detail::CheckedOptions&>(options);
}

detail::Fields& fields(OptimizerOptions& options) {
  return dynamic_cast<detail::Fields&>(options);
}

detail::Fields& fields(OptimizerParamState& state) {
  return dynamic_cast<detail::Fields&>(state);
}

/// Brings a state's tensors to the device and type of its parameter, and says what does not fit.
class FitToParameter final : public detail::FieldVisitor {
 public:
  explicit FitToParameter(const at::Tensor& parameter) : parameter_(parameter) {}

  /// Empty if all fits: what is wrong, to follow "the archive's".
  const std::string& misfit() const { return misfit_; }

 private:
  void field(const char* name, at::Tensor& value, const detail::FieldNote&) override {
    if (!value.defined()) return;
    if (value.sizes() != parameter_.sizes()) {
      misfit_ = c10::str(name, " has shape ", value.sizes(), ", the parameter ", parameter_.sizes());
      return;
    }
    // What is kept in float32 for a parameter of fewer digits stays so.
    const auto type = parameter_.scalar_type();
    const bool finer = (type == at::kHalf || type == at::kBFloat16) && value.scalar_type() != type;
    value = value.to(parameter_.device(), finer ? at::kFloat : type);
  }
  void field(const char*, bool&, const detail::FieldNote&) override {}
  void field(const char* name, int64_t& value, const detail::FieldNote& note) override {
    if (value < 0) misfit_ = c10::str(name, " must not be negative, got ", value);
    if (note.enumerated && value >= static_cast<int64_t>(note.choices.count)) {
      misfit_ = c10::str(name, " has the number ", value, ", which means nothing to this version of sgdph");
    }
  }
  void field(const char*, double&, const detail::FieldNote&) override {}
  void field(const char*, std::string&, const detail::FieldNote&) override {}
  void field(const char*, std::vector<int64_t>&, const detail::FieldNote&) override {}
  void field(const char*, std::vector<double>&, const detail::FieldNote&) override {}
  void field(const char*, std::vector<std::string>&, const detail::FieldNote&) override {}

  const at::Tensor& parameter_;
  std::string misfit_;
};

int64_t read_count(torch::serialize::InputArchive& archive, const std::string& key, const std::string& name) {
  c10::IValue value;
  TORCH_CHECK(archive.try_read(key, value) && value.isInt(), name, ": the archive lacks the number '", key, "'");
  return value.toInt();
}

torch::serialize::InputArchive read_archive(
    torch::serialize::InputArchive& archive, const std::string& key, const std::string& name) {
  torch::serialize::InputArchive inner;
  TORCH_CHECK(archive.try_read(key, inner), name, ": the archive lacks '", key, "'");
  return inner;
}

template <class Object>
void write_archive(torch::serialize::OutputArchive& archive, const std::string& key, const Object& object) {
  torch::serialize::OutputArchive inner(archive.compilation_unit());
  object.save(inner);
  archive.write(key, inner);
}

std::string group_name(const std::string& optimizer, size_t group) {
  return optimizer + ", group " + std::to_string(group);
}

using SharedValues = decltype(detail::shared_values(std::declval<detail::Fields&>()));

SharedValues shared_in_effect(const OptimizerOptions& options) {
  const auto copy = options.clone();
  dynamic_cast<detail::CheckedOptions&>(*copy).fill_unset();
  return detail::shared_values(fields(*copy));
}

/// Refuses a group whose optimizer-wide options are not those of the defaults.
void check_shared(
    const std::string& name, const OptimizerOptions& defaults, const std::vector<const OptimizerOptions*>& groups) {
  std::vector<uint64_t> wanted;
  std::vector<uint64_t> found;
  detail::append_raw_values(checked(defaults), wanted, /*only_shared=*/true);
  for (size_t i = 0; i < groups.size(); ++i) {
    found.clear();
    detail::append_raw_values(checked(*groups[i]), found, /*only_shared=*/true);
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

}  // namespace

OptimizerBase::OptimizerBase(
    const char* name, std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(groups, std::move(defaults)), name_(name), record_(std::make_unique<detail::OptimizerRecord>()) {
  for (size_t i = 0; i < groups.size(); ++i) detail::keep_options(param_groups_[i], groups[i]);
}

OptimizerBase::OptimizerBase(OptimizerBase&&) noexcept = default;
OptimizerBase::~OptimizerBase() = default;

at::Tensor OptimizerBase::step(LossClosure closure) {
  TORCH_CHECK(
      !c10::InferenceMode::is_enabled(), name_,
      ": a step in InferenceMode would make state that autograd refuses later; leave the mode, or use NoGradGuard");
  at::Tensor loss;
  if (closure) {
    at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  torch::NoGradGuard no_grad;
  check();
  const auto non_finite = detail::count_non_finite(checked_gradients());
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

std::vector<at::Tensor> OptimizerBase::checked_gradients() const {
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& parameters = param_groups_[i].params();
    for (size_t j = 0; j < parameters.size(); ++j) {
      if (!moves(parameters[j])) continue;
      const auto& parameter = parameters[j];
      const auto& gradient = parameter.grad();
      const auto where = [&] { return group_name(name_, i) + ", parameter " + std::to_string(j); };
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
  check_groups(groups);
  Optimizer::add_param_group(group);
  detail::keep_options(param_groups_.back(), group);
  check();
}

void OptimizerBase::check() {
  if (record_->has_options(*defaults_, param_groups_) && record_->has_parameters(param_groups_)) {
    record_->drop_dead(state_);
    return;
  }
  check_groups(param_groups_);
  record_->keep_options();
  notice_changes();
}

void OptimizerBase::notice_changes() {
  if (record_->has_parameters(param_groups_)) return;
  for (const auto& [parameter, reshaped] : record_->keep_parameters(param_groups_, state_)) {
    if (reshaped) {
      erase_state(parameter);
    } else if (find_state(parameter) != nullptr) {
      FitToParameter fit(parameter);
      fields(find_or_make_state(parameter)).visit(fit);
    }
  }
  groups_changed();
  record_->drop_dead(state_);
}

void OptimizerBase::check_groups(const std::vector<OptimizerParamGroup>& groups) const {
  const auto& defaults = *defaults_;
  checked(defaults).check(name_ + ", defaults");
  std::vector<const OptimizerOptions*> all;
  std::unordered_set<const at::TensorImpl*> seen;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& options = groups[i].options();
    TORCH_CHECK(
        typeid(options) == typeid(defaults), group_name(name_, i), ": its options are of another optimizer; give it ",
        name_, "Options");
    checked(options).check(group_name(name_, i));
    all.push_back(&options);
    for (size_t j = 0; j < groups[i].params().size(); ++j) {
      TORCH_CHECK(
          seen.insert(groups[i].params()[j].unsafeGetTensorImpl()).second, group_name(name_, i), ": parameter ", j,
          " stands in the optimizer twice; list every parameter once");
    }
  }
  check_shared(name_, defaults, all);
}

const OptimizerParamState* OptimizerBase::find_state(const at::Tensor& parameter) const {
  const auto* key = record_->key_of(parameter);
  const auto found = state_.find(key != nullptr ? *key : detail::state_key(state_, parameter));
  return found == state_.end() ? nullptr : found->second.get();
}

OptimizerParamState& OptimizerBase::find_or_make_state(const at::Tensor& parameter) {
  const auto* key = record_->key_of(parameter);
  auto& state = state_[key != nullptr ? *key : detail::state_key(state_, parameter)];
  if (!state) state = make_state();
  return *state;
}

void OptimizerBase::erase_state(const at::Tensor& parameter) {
  state_.erase(detail::state_key(state_, parameter));
}

void OptimizerBase::save(torch::serialize::OutputArchive& archive) const {
  archive.write("sgdph_format", c10::IValue(detail::kArchiveFormat));
  archive.write("sgdph_optimizer", c10::IValue(name_));
  write_archive(archive, "defaults", checked(*defaults_));
  if (const auto shared = progress()) write_archive(archive, "progress", *shared);
  archive.write("groups", c10::IValue(static_cast<int64_t>(param_groups_.size())));
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& group = param_groups_[i];
    torch::serialize::OutputArchive group_archive(archive.compilation_unit());
    write_archive(group_archive, "options", checked(group.options()));
    group_archive.write("params", c10::IValue(static_cast<int64_t>(group.params().size())));
    for (size_t j = 0; j < group.params().size(); ++j) {
      if (const auto* state = find_state(group.params()[j])) {
        write_archive(group_archive, "state/" + std::to_string(j), dynamic_cast<const detail::Fields&>(*state));
      }
    }
    archive.write("group/" + std::to_string(i), group_archive);
  }
}

int64_t OptimizerBase::read_format(torch::serialize::InputArchive& archive) const {
  c10::IValue saved_name;
  TORCH_CHECK(
      archive.try_read("sgdph_optimizer", saved_name) && saved_name.isString(), name_,
      ": the archive does not hold an sgdph optimizer");
  TORCH_CHECK(
      saved_name.toStringRef() == name_, name_, ": the archive holds the optimizer ", saved_name.toStringRef(),
      "; load it into an sgdph::", saved_name.toStringRef());
  const auto format = read_count(archive, "sgdph_format", name_);
  TORCH_CHECK(format >= 1, name_, ": the archive has format ", format, ", which does not exist; the file is damaged");
  TORCH_CHECK(
      format <= detail::kArchiveFormat, name_, ": the archive has format ", format,
      ", this version of sgdph reads up to ", detail::kArchiveFormat, "; use a newer sgdph");
  return format;
}

void OptimizerBase::load(torch::serialize::InputArchive& archive) {
  notice_changes();
  const auto format = read_format(archive);
  // Everything is read and checked before anything is changed.
  std::unique_ptr<OptimizerOptions> defaults = defaults_->clone();
  auto defaults_archive = read_archive(archive, "defaults", name_);
  fields(*defaults).load(defaults_archive, format);
  checked(*defaults).check(name_ + ", defaults of the archive");

  const auto group_count = read_count(archive, "groups", name_);
  TORCH_CHECK(
      group_count == static_cast<int64_t>(param_groups_.size()), name_, ": the archive has ", group_count,
      " parameter groups, the optimizer ", param_groups_.size());
  struct LoadedGroup {
    std::unique_ptr<OptimizerOptions> options;
    std::vector<std::unique_ptr<OptimizerParamState>> states;
  };
  std::vector<LoadedGroup> groups(param_groups_.size());
  std::vector<const OptimizerOptions*> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto where = group_name(name_, i);
    auto group_archive = read_archive(archive, "group/" + std::to_string(i), where);
    auto options_archive = read_archive(group_archive, "options", where);
    groups[i].options = defaults->clone();
    fields(*groups[i].options).load(options_archive, format);
    checked(*groups[i].options).check(where + " of the archive");
    all.push_back(groups[i].options.get());

    const auto& parameters = param_groups_[i].params();
    const auto count = read_count(group_archive, "params", where);
    TORCH_CHECK(
        count == static_cast<int64_t>(parameters.size()), where, ": the archive has ", count,
        " parameters, the optimizer ", parameters.size());
    groups[i].states.resize(parameters.size());
    for (size_t j = 0; j < parameters.size(); ++j) {
      torch::serialize::InputArchive state_archive;
      if (!group_archive.try_read("state/" + std::to_string(j), state_archive)) continue;
      auto state = make_state();
      fields(*state).load(state_archive, format);
      FitToParameter fit(parameters[j]);
      fields(*state).visit(fit);
      if (!fit.misfit().empty()) {
        const auto name = name_of(parameters[j]);
        TORCH_CHECK(
            false, where, ", parameter ", j, name.empty() ? std::string() : " (" + name + ")", ": the archive's ",
            fit.misfit(), "; construct the optimizer on the model it was saved with, or use load_matching");
      }
      groups[i].states[j] = std::move(state);
    }
  }
  check_shared(name_, *defaults, all);
  auto shared = progress();
  if (shared) {
    auto progress_archive = read_archive(archive, "progress", name_);
    shared->load(progress_archive, format);
    check_progress(*shared);
  }

  defaults_ = std::move(defaults);
  state_.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    param_groups_[i].set_options(std::move(groups[i].options));
    for (size_t j = 0; j < groups[i].states.size(); ++j) {
      if (!groups[i].states[j]) continue;
      state_[detail::state_key(state_, param_groups_[i].params()[j])] = std::move(groups[i].states[j]);
    }
  }
  if (shared) set_progress(*shared);
  groups_changed();
}

LoadReport OptimizerBase::load_matching(torch::serialize::InputArchive& archive) {
  notice_changes();
  const auto format = read_format(archive);
  auto shared = progress();
  std::vector<std::string> own_names, saved_names;
  if (shared) {
    own_names = names_in(*shared);
    auto progress_archive = read_archive(archive, "progress", name_);
    shared->load(progress_archive, format);
    if (format >= 2) saved_names = names_in(*shared);  // version 0.1 wrote none
  }
  const auto has_names = [](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  };
  const bool by_name = has_names(own_names) && has_names(saved_names);
  const auto title = [&](const std::vector<std::string>& names, size_t position, size_t group, size_t index) {
    const bool named = by_name && position < names.size() && !names[position].empty();
    return named ? names[position] : c10::str("group ", group, " parameter ", index);
  };

  // Everything is read before anything is changed.
  std::map<std::string, std::unique_ptr<OptimizerParamState>> saved;
  std::vector<std::string> order;
  const auto group_count = static_cast<size_t>(read_count(archive, "groups", name_));
  for (size_t i = 0; i < group_count; ++i) {
    const auto where = group_name(name_, i);
    auto group_archive = read_archive(archive, "group/" + std::to_string(i), where);
    const auto count = static_cast<size_t>(read_count(group_archive, "params", where));
    for (size_t j = 0; j < count; ++j) {
      order.push_back(title(saved_names, order.size(), i, j));
      auto& state = saved[order.back()];
      torch::serialize::InputArchive state_archive;
      if (!group_archive.try_read("state/" + std::to_string(j), state_archive)) continue;
      state = make_state();
      fields(*state).load(state_archive, format);
    }
  }

  LoadReport report;
  std::vector<std::pair<at::Tensor, std::unique_ptr<OptimizerParamState>>> taken;
  size_t position = 0;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& parameters = param_groups_[i].params();
    for (size_t j = 0; j < parameters.size(); ++j) {
      const auto name = title(own_names, position++, i, j);
      const auto found = saved.find(name);
      if (found == saved.end()) {
        report.skipped.push_back(name + ": not in the archive");
        continue;
      }
      auto state = std::move(found->second);
      saved.erase(found);
      if (!state) continue;
      FitToParameter fit(parameters[j]);
      fields(*state).visit(fit);
      if (fit.misfit().empty()) {
        taken.emplace_back(parameters[j], std::move(state));
      } else {
        report.skipped.push_back(name + ": the archive's " + fit.misfit());
      }
    }
  }
  for (const auto& name : order) {
    if (saved.count(name) != 0) report.skipped.push_back(name + ": in the archive only");
  }

  report.taken = static_cast<int64_t>(taken.size());
  state_.clear();
  for (auto& [parameter, state] : taken) state_[detail::state_key(state_, parameter)] = std::move(state);
  if (shared) set_matching_progress(*shared);
  groups_changed();
  return report;
}

}  // namespace sgdph
