#include <sgdph/optimizer.h>

#include <sgdph/detail/fields.h>

#include "detail/compat.h"
#include "optimizer_impl.h"

#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <algorithm>
#include <map>

// How optimizers are saved and loaded.

namespace sgdph {
namespace {

using detail::checked;
using detail::fields;
using detail::group_name;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;

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

/// Refuses what is no archive of this optimizer.
int64_t read_format(torch::serialize::InputArchive& archive, const std::string& name) {
  c10::IValue saved_name;
  TORCH_CHECK(
      archive.try_read("sgdph_optimizer", saved_name) && saved_name.isString(), name,
      ": the archive does not hold an sgdph optimizer");
  TORCH_CHECK(
      saved_name.toStringRef() == name, name, ": the archive holds the optimizer ", saved_name.toStringRef(),
      "; load it into an sgdph::", saved_name.toStringRef());
  const auto format = read_count(archive, "sgdph_format", name);
  TORCH_CHECK(format >= 1, name, ": the archive has format ", format, ", which does not exist; the file is damaged");
  TORCH_CHECK(
      format <= detail::kArchiveFormat, name, ": the archive has format ", format,
      ", this version of sgdph reads up to ", detail::kArchiveFormat, "; use a newer sgdph");
  return format;
}

}  // namespace

std::string detail::fit_to_parameter(OptimizerParamState& state, const at::Tensor& parameter) {
  FitToParameter fit(parameter);
  fields(state).visit(fit);
  return fit.misfit();
}

void OptimizerBase::save(torch::serialize::OutputArchive& archive) const {
  archive.write("sgdph_format", c10::IValue(detail::kArchiveFormat));
  archive.write("sgdph_optimizer", c10::IValue(name()));
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

void OptimizerBase::load(torch::serialize::InputArchive& archive) {
  notice_changes();
  const auto format = read_format(archive, name());
  // Everything is read and checked before anything is changed.
  std::unique_ptr<OptimizerOptions> defaults = defaults_->clone();
  auto defaults_archive = read_archive(archive, "defaults", name());
  fields(*defaults).load(defaults_archive, format);
  checked(*defaults).check(name() + ", defaults of the archive");

  const auto group_count = read_count(archive, "groups", name());
  TORCH_CHECK(
      group_count == static_cast<int64_t>(param_groups_.size()), name(), ": the archive has ", group_count,
      " parameter groups, the optimizer ", param_groups_.size());
  struct LoadedGroup {
    std::unique_ptr<OptimizerOptions> options;
    std::vector<std::unique_ptr<OptimizerParamState>> states;
  };
  std::vector<LoadedGroup> groups(param_groups_.size());
  std::vector<const OptimizerOptions*> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto where = group_name(name(), i);
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
      const auto misfit = detail::fit_to_parameter(*state, parameters[j]);
      if (!misfit.empty()) {
        const auto name = name_of(parameters[j]);
        TORCH_CHECK(
            false, where, ", parameter ", j, name.empty() ? std::string() : " (" + name + ")", ": the archive's ",
            misfit, "; construct the optimizer on the model it was saved with, or use load_matching");
      }
      groups[i].states[j] = std::move(state);
    }
  }
  detail::check_shared(name(), *defaults, all);
  auto shared = progress();
  if (shared) {
    auto progress_archive = read_archive(archive, "progress", name());
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

void OptimizerBase::restore(
    std::vector<std::pair<at::Tensor, std::unique_ptr<OptimizerParamState>>> states, detail::Fields* progress) {
  notice_changes();
  for (const auto& [parameter, state] : states) {
    const auto misfit = detail::fit_to_parameter(*state, parameter);
    TORCH_CHECK(
        misfit.empty(), name(), ": the state of ", name_of(parameter).empty() ? "a parameter" : name_of(parameter),
        " does not fit: ", misfit, "; construct the optimizer on the model it was saved with");
  }
  if (progress != nullptr) check_progress(*progress);
  state_.clear();
  for (auto& [parameter, state] : states) state_[detail::state_key(state_, parameter)] = std::move(state);
  if (progress != nullptr) set_progress(*progress);
  groups_changed();
}

LoadReport OptimizerBase::load_matching(torch::serialize::InputArchive& archive) {
  notice_changes();
  const auto format = read_format(archive, name());
  auto shared = progress();
  std::vector<std::string> own_names, saved_names;
  if (shared) {
    own_names = names_in(*shared);
    auto progress_archive = read_archive(archive, "progress", name());
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
  const auto group_count = static_cast<size_t>(read_count(archive, "groups", name()));
  for (size_t i = 0; i < group_count; ++i) {
    const auto where = group_name(name(), i);
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
      const auto misfit = detail::fit_to_parameter(*state, parameters[j]);
      if (misfit.empty()) {
        taken.emplace_back(parameters[j], std::move(state));
      } else {
        report.skipped.push_back(name);
        report.skipped.back().append(": the archive's ").append(misfit);
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
