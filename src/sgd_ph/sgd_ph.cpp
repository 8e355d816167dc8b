#include <sgdph/sgd_ph.h>

#include "sgd_ph/impl.h"
#include "sgd_ph/probes.h"
#include "sgd_ph/shift_guard.h"

#include <torch/types.h>

#include <algorithm>
#include <unordered_set>

namespace sgdph {
namespace {

using sgd_ph::shared_options;
using torch::optim::OptimizerParamGroup;

// Streams of random draws.
constexpr uint64_t kProbeStream = 0;
constexpr uint64_t kGuardStream = 1;

std::vector<OptimizerParamGroup> one_group_of(const sgd_ph::Blocks& blocks) {
  std::vector<at::Tensor> parameters;
  for (const auto& slot : blocks.slots()) parameters.push_back(slot.parameter);
  return {OptimizerParamGroup(std::move(parameters))};
}

/// Each rank takes one of the due, neighbours the same or the next.
void divide(std::vector<DueParameter>& due, int64_t rank, int64_t ranks) {
  const auto count = static_cast<int64_t>(due.size());
  std::vector<int64_t> takers(due.size());
  for (int64_t r = 0; r < ranks && count > 0; ++r) ++takers[static_cast<size_t>(r * count / ranks)];
  for (size_t i = 0; i < due.size(); ++i) {
    due[i].here = static_cast<int64_t>(i) == rank * count / ranks;
    due[i].share = static_cast<double>(takers[i]) / static_cast<double>(ranks);
  }
}

struct SgdPhProgress final : public detail::Fields {
  int64_t step = 0;
  int64_t turns = 0;
  int64_t cursor = 0;
  int64_t waited = 0;
  sgd_ph::Blocks::Record blocks;

  void visit(detail::FieldVisitor& visitor) override {
    visitor("step", step);
    visitor("turns", turns);
    visitor("cursor", cursor);
    visitor("by_module", blocks.by_module);
    visitor("candidates", blocks.candidates);
    if (visitor.format() < 2) return;
    visitor("names", blocks.names);
    visitor("kinds", blocks.kinds);
    if (visitor.format() >= 4) visitor("waited", waited);
  }
};

}  // namespace

// --- Construction --------------------------------------------------------------------------------------------------

SGDPH::SGDPH(std::unique_ptr<Impl>&& impl, std::vector<OptimizerParamGroup> groups, const SGDPHOptions& defaults)
    : CurvatureOptimizer("SGDPH", std::move(groups), std::make_unique<SGDPHOptions>(defaults)), impl_(std::move(impl)) {
  check();
}

SGDPH::SGDPH(std::unique_ptr<Impl>&& impl, const SGDPHOptions& defaults)
    : SGDPH(std::move(impl), one_group_of(impl->blocks), defaults) {}

SGDPH::SGDPH(std::vector<OptimizerParamGroup> groups, SGDPHOptions defaults)
    : SGDPH(std::make_unique<Impl>(), std::move(groups), defaults) {}

SGDPH::SGDPH(std::vector<at::Tensor> parameters, SGDPHOptions defaults)
    : SGDPH(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

SGDPH::SGDPH(const torch::nn::Module& module, SGDPHOptions defaults, const Classifier& classifier)
    : SGDPH(Impl::of(sgd_ph::classify_parameters(module, classifier), /*published=*/false), defaults) {}

SGDPH::SGDPH(
    const torch::OrderedDict<std::string, at::Tensor>& named, SGDPHOptions defaults, const Classifier& classifier)
    : SGDPH(Impl::of(sgd_ph::classify_parameters(named, classifier), /*published=*/!classifier), defaults) {}

SGDPH::SGDPH(SGDPH&& other) noexcept = default;
SGDPH::~SGDPH() = default;

void SGDPH::groups_changed() {
  impl_->blocks.follow(param_groups_);
  CurvatureOptimizer::groups_changed();
}

SGDPH& SGDPH::group(const Selector& selector, const SGDPHOptions& options) {
  check();
  std::unordered_set<const at::TensorImpl*> chosen;
  for (const auto& slot : impl_->blocks.slots()) {
    const auto [info, module] = sgd_ph::Blocks::info_of(slot);
    if (selector(info)) chosen.insert(slot.parameter.unsafeGetTensorImpl());
  }
  TORCH_CHECK(
      !chosen.empty(), "SGDPH::group: no parameter is chosen, of ", impl_->blocks.slots().size(),
      "; partition() lists their names");

  std::vector<at::Tensor> moved;
  std::vector<std::vector<at::Tensor>> before;
  for (auto& group : param_groups_) {
    before.push_back(group.params());
    group.params().clear();
    for (const auto& parameter : before.back()) {
      (chosen.count(parameter.unsafeGetTensorImpl()) != 0 ? moved : group.params()).push_back(parameter);
    }
  }
  // LibTorch's `add_param_group` takes no parameter that has a state.
  param_groups_.emplace_back(std::move(moved), std::make_unique<SGDPHOptions>(options));
  try {
    check();
  } catch (...) {
    param_groups_.pop_back();
    for (size_t i = 0; i < before.size(); ++i) param_groups_[i].params() = before[i];
    throw;
  }
  return *this;
}

SGDPH& SGDPH::group(const Classifier& classifier, const SGDPHOptions& options) {
  return group([&](const ParameterInfo& info) { return classifier(info) == Role::Block; }, options);
}

SGDPH& SGDPH::add_module(
    const std::string& name, const torch::nn::Module& module, const SGDPHOptions& options,
    const Classifier& classifier) {
  check();
  std::unordered_set<const at::TensorImpl*> known;
  std::unordered_set<std::string> names;
  for (const auto& slot : impl_->blocks.slots()) {
    known.insert(slot.parameter.unsafeGetTensorImpl());
    if (slot.named) names.insert(slot.name);
  }
  std::vector<at::Tensor> added;
  std::vector<sgd_ph::ClassifiedParameter> classified;
  for (auto& item : sgd_ph::classify_parameters(module, classifier)) {
    if (known.count(item.parameter.unsafeGetTensorImpl()) != 0) continue;
    item.name = name + "." + item.name;
    TORCH_CHECK(
        names.count(item.name) == 0, "SGDPH::add_module: the optimizer has a parameter ", item.name,
        " already; give the module another name");
    added.push_back(item.parameter);
    classified.push_back(std::move(item));
  }
  TORCH_CHECK(
      !added.empty(), "SGDPH::add_module: the module ", name,
      " has no parameter that the optimizer has not; add it once");
  const auto before = impl_->blocks;
  impl_->blocks.expect(std::move(classified));
  try {
    add_param_group(OptimizerParamGroup(std::move(added), std::make_unique<SGDPHOptions>(options)));
  } catch (...) {
    impl_->blocks = before;
    throw;
  }
  return *this;
}

const SGDPHParamState* SGDPH::param_state(const at::Tensor& parameter) const {
  return find_state_of<SGDPHParamState>(parameter);
}

void SGDPH::set_curvature_filter(CurvatureFilter filter) {
  impl_->curvature_filter = std::move(filter);
}

std::string SGDPH::describe() const {
  const auto all = partition();
  return std::to_string(all.blocks()) + " of " + std::to_string(all.entries.size()) + " parameters are blocks";
}

std::string SGDPH::name_of(const at::Tensor& parameter) const {
  for (const auto& slot : impl_->blocks.slots()) {
    if (slot.named && slot.parameter.is_same(parameter)) return slot.name;
  }
  return "";
}

Partition SGDPH::partition() const {
  auto partition = impl_->blocks.partition(*this);
  for (auto& entry : partition.entries) {
    if (entry.second_order && rejected_in_a_row(entry.parameter) != 0) entry.reason += ", curvature not finite";
  }
  return partition;
}

// --- Measuring -----------------------------------------------------------------------------------------------------

std::vector<DueParameter> SGDPH::due() const {
  const auto& options = shared_options(*this);
  std::vector<DueParameter> due;
  for (const auto slot : impl_->schedule.due(options, impl_->blocks.standings(*this), ranks())) {
    due.push_back({slot, impl_->blocks.slots()[slot].parameter});
  }
  if (options.effective_refresh() == Refresh::Spread) divide(due, rank(), ranks());
  return due;
}

Probes SGDPH::probes_of(const DueParameter& due) const {
  const auto& options = shared_options(*this);
  Probes probes;
  if (has_probe_source()) {
    probes.probe = probe_from_source(due.parameter);
  } else {
    const auto* state = param_state(due.parameter);
    const auto refreshes = static_cast<uint64_t>(state == nullptr ? 0 : state->refreshes());
    const ProbePlace place{options.seed(), kProbeStream, due.position, refreshes};
    probes.probe = sgd_ph::probe_kind(options.probe()).draw(due.parameter, place, options);
  }
  if (!has_probe_source() && sgd_ph::guard_looks(options, param_state(due.parameter))) {
    const auto* state = param_state(due.parameter);
    const auto turns = static_cast<uint64_t>(state == nullptr ? 0 : state->turns());
    probes.second = sgd_ph::mixed_signs_like(due.parameter, {options.seed(), kGuardStream, due.position, turns});
  }
  return probes;
}

bool SGDPH::joint() const {
  return shared_options(*this).effective_refresh() == Refresh::Joint;
}

// --- The archive ---------------------------------------------------------------------------------------------------

std::unique_ptr<torch::optim::OptimizerParamState> SGDPH::make_state() const {
  return std::make_unique<SGDPHParamState>();
}

std::unique_ptr<detail::Fields> SGDPH::progress() const {
  const auto& counts = impl_->schedule.counts();
  auto progress = std::make_unique<SgdPhProgress>();
  progress->step = counts.step;
  progress->turns = counts.turns;
  progress->cursor = static_cast<int64_t>(counts.cursor);
  progress->waited = counts.waited;
  // Of the groups, not the slots: some may have been added through the base class since the last check.
  progress->blocks = impl_->blocks.record(param_groups_);
  return progress;
}

void SGDPH::check_progress(const detail::Fields& fields) const {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  const auto& blocks = progress.blocks;
  const auto fits = [&](size_t count) { return count == impl_->blocks.slots().size(); };
  TORCH_CHECK(
      progress.step >= 0 && progress.turns >= 0 && progress.cursor >= 0 && progress.waited >= 0 &&
          fits(blocks.candidates.size()) && (blocks.names.empty() || fits(blocks.names.size())) &&
          (blocks.kinds.empty() || fits(blocks.kinds.size())),
      "SGDPH: the archive's step count or partition does not fit this optimizer");
}

void SGDPH::set_progress(detail::Fields& fields) {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  impl_->schedule =
      sgd_ph::RefreshSchedule({progress.step, progress.turns, static_cast<size_t>(progress.cursor), progress.waited});
  impl_->blocks.restore(progress.blocks);
}

std::vector<std::string> SGDPH::names_in(const detail::Fields& fields) const {
  return dynamic_cast<const SgdPhProgress&>(fields).blocks.names;
}

void SGDPH::set_matching_progress(const detail::Fields& fields) {
  // Curvature is corrected by the number of turns it was averaged over; whose turn is next is begun anew.
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  impl_->schedule =
      sgd_ph::RefreshSchedule({std::max<int64_t>(progress.step, 0), std::max<int64_t>(progress.turns, 0), 0, 0});
}

}  // namespace sgdph
