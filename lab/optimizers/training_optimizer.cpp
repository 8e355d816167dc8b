#include "optimizers/training_optimizer.h"

#include "base/error.h"

#include <ATen/Functions.h>
#include <sgdph/catalogue.h>
#include <sgdph/classifier.h>
#include <sgdph/curvature_optimizer.h>
#include <torch/nn/module.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace sgdph::lab::optimizers {
namespace {

/// LibTorch 1.x writes addresses as 0x..., by which parameters and their states are told apart; 2.x reads them as
/// decimal numbers, and so as 0 all of them.
std::string decimal(const std::string& word) {
  return word.rfind("0x", 0) == 0 ? std::to_string(std::stoull(word, nullptr, 16)) : word;
}

/// The same archive with decimal addresses, which all versions read.
void copy_with_decimal_addresses(torch::serialize::InputArchive& from, torch::serialize::OutputArchive& to) {
  for (const auto& key : from.keys()) {
    torch::serialize::InputArchive inner;
    if (from.try_read(key, inner)) {
      torch::serialize::OutputArchive copy(to.compilation_unit());
      copy_with_decimal_addresses(inner, copy);
      to.write(decimal(key), copy);
      continue;
    }
    c10::IValue value;
    from.read(key, value);
    to.write(decimal(key), value.isString() ? c10::IValue(decimal(value.toStringRef())) : value);
  }
}

std::string bytes_of(torch::serialize::OutputArchive& archive) {
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

torch::serialize::InputArchive archive_of(const std::string& bytes) {
  std::istringstream in(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  return archive;
}

using Members = std::set<const c10::TensorImpl*>;

/// Parameters with a weight decay of their own.
struct DecayGroup {
  double weight_decay = 0;
  Members members;

  bool has(const at::Tensor& parameter) const { return members.count(parameter.unsafeGetTensorImpl()) != 0; }
};

/// What each selector chooses first, in the order of torchvision's script.
std::vector<DecayGroup> groups_of(const torch::nn::Module& model, const std::string& name, const GroupDecay& decay) {
  if (!decay.bias && !decay.norm) return {};
  if (optimizer_entry(name).option("weight_decay") == nullptr) {
    fail("--{}-weight-decay: {} has no weight decay", decay.norm ? "norm" : "bias", name);
  }
  std::vector<std::pair<Selector, DecayGroup>> choices;
  if (decay.bias) {
    choices.push_back({[](const ParameterInfo& info) { return info.local_name == "bias"; }, {*decay.bias, {}}});
  }
  if (decay.norm) choices.push_back({norms(), {*decay.norm, {}}});
  for (const auto& module : model.modules()) {
    for (const auto& item : module->named_parameters(/*recurse=*/false)) {
      const ParameterInfo info{item.key(), item.value(), module.get(), item.key(), Role::Default};
      const auto choice =
          std::find_if(choices.begin(), choices.end(), [&](const auto& one) { return one.first(info); });
      if (choice != choices.end()) choice->second.members.insert(info.parameter.unsafeGetTensorImpl());
    }
  }
  std::vector<DecayGroup> groups;
  for (auto& [selector, group] : choices) {
    if (!group.members.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

/// SGD-PH: which parameters are blocks is found before they come into groups.
std::unique_ptr<torch::optim::Optimizer> with_blocks(
    const torch::nn::Module& model, const std::string& name, const OptimizerValues& values, const OptionValues& given,
    const std::vector<DecayGroup>& groups) {
  const auto blocks = values.find(kBlocks);
  const bool by_module = blocks == values.end() || blocks->second == kBlocksByModule;
  auto optimizer =
      by_module ? sgdph::make_optimizer(name, model, given) : sgdph::make_optimizer(name, model.parameters(), given);
  auto& grouped = dynamic_cast<SGDPH&>(*optimizer);
  const auto options = static_cast<const SGDPHOptions&>(grouped.defaults());
  for (const auto& group : groups) {
    const Selector chosen = [&](const ParameterInfo& info) { return group.has(info.parameter); };
    grouped.group(chosen, SGDPHOptions(options).weight_decay(group.weight_decay));
  }
  return optimizer;
}

std::unique_ptr<torch::optim::Optimizer> with_groups(
    const torch::nn::Module& model, const std::string& name, const OptionValues& given,
    const std::vector<DecayGroup>& groups) {
  std::vector<ParameterGroup> made(groups.size() + 1);
  for (size_t i = 0; i < groups.size(); ++i) made[i + 1].values["weight_decay"] = groups[i].weight_decay;
  for (const auto& parameter : model.parameters()) {
    const auto own =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.has(parameter); });
    made[own == groups.end() ? 0 : static_cast<size_t>(own - groups.begin()) + 1].parameters.push_back(parameter);
  }
  if (made.front().parameters.empty()) made.erase(made.begin());
  return sgdph::make_optimizer(name, made, given);
}

}  // namespace

TrainingOptimizer::TrainingOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer)
    : optimizer_(std::move(optimizer)), curvature_(dynamic_cast<CurvatureOptimizer*>(optimizer_.get())) {}

void TrainingOptimizer::backward(const at::Tensor& loss) {
  if (curvature_ != nullptr) {
    curvature_->backward(loss);
  } else {
    loss.backward();
  }
}

bool TrainingOptimizer::curvature_due() {
  return curvature_ != nullptr && curvature_->curvature_due();
}

void TrainingOptimizer::update_curvature(const at::Tensor& loss) {
  if (curvature_ != nullptr) curvature_->update_curvature(loss);
}

void TrainingOptimizer::share_with_ranks(int64_t rank, int64_t ranks, std::function<void(at::Tensor& tensor)> sum) {
  if (curvature_ == nullptr) return;
  curvature_->set_ranks(rank, ranks);
  curvature_->set_all_reduce(std::move(sum));
}

bool TrainingOptimizer::step() {
  optimizer_->step();
  const auto* ours = dynamic_cast<const OptimizerBase*>(optimizer_.get());
  return ours == nullptr || ours->last_step().applied;
}

std::string TrainingOptimizer::describe() const {
  const auto* ours = dynamic_cast<const OptimizerBase*>(optimizer_.get());
  return ours == nullptr ? "" : ours->describe();
}

double TrainingOptimizer::lr() const {
  return optimizer_->param_groups().front().options().get_lr();
}

std::string TrainingOptimizer::save() const {
  torch::serialize::OutputArchive archive;
  optimizer_->save(archive);
  return bytes_of(archive);
}

void TrainingOptimizer::load(const std::string& bytes) {
  auto archive = archive_of(bytes);
  if (dynamic_cast<const OptimizerBase*>(optimizer_.get()) == nullptr) {
    torch::serialize::OutputArchive copy;
    copy_with_decimal_addresses(archive, copy);
    archive = archive_of(bytes_of(copy));
  }
  optimizer_->load(archive);
}

std::unique_ptr<TrainingOptimizer> make_optimizer(
    const torch::nn::Module& model, const std::string& name, const OptimizerValues& values, int64_t seed,
    const GroupDecay& decay) {
  const auto given = library_values(name, values, seed);
  const auto groups = groups_of(model, name, decay);
  try {
    auto optimizer = optimizer_entry(name).info.traits.has_blocks ? with_blocks(model, name, values, given, groups)
                                                                  : with_groups(model, name, given, groups);
    set_curvature_control(*optimizer, values);
    return std::make_unique<TrainingOptimizer>(std::move(optimizer));
  } catch (const std::invalid_argument& error) {
    // The optimizers' own checks name option, value and bound.
    throw UserError(error.what());
  }
}

SGDPH::CurvatureFilter curvature_control(const OptimizerValues& values) {
  const auto control = values.find(kCurvatureControl);
  if (control == values.end()) return nullptr;
  if (control->second == kBlockMean) {
    return [](const at::Tensor& curvature) { return curvature.mean().expand_as(curvature).contiguous(); };
  }
  if (control->second == kConstantMultiplier) {
    const auto stand_in = values.at("lr_so").get<double>() / values.at(kBlockMultiplier).get<double>();
    return [stand_in](const at::Tensor& curvature) { return at::full_like(curvature, stand_in); };
  }
  return nullptr;
}

void set_curvature_control(torch::optim::Optimizer& optimizer, const OptimizerValues& values) {
  if (auto filter = curvature_control(values)) dynamic_cast<SGDPH&>(optimizer).set_curvature_filter(std::move(filter));
}

}  // namespace sgdph::lab::optimizers
