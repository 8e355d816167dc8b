#include "cost/engine_run.h"

#include "models/image_model.h"

#include <ATen/Functions.h>
#include <sgdph/hessian.h>
#include <sgdph/sgd_ph.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

namespace sgdph::lab::cost {
namespace {

double curvature_batch_of(const Engine& engine) {
  return optimizers::batch_part_from_text(
      engine.settings.option<std::string>(optimizers::kCurvatureBatch, optimizers::kWholeBatch));
}

std::shared_ptr<models::ImageModel> seeded_model(const Engine& engine, const Workload& workload) {
  torch::manual_seed(static_cast<uint64_t>(workload.seed));
  return models::make_model(workload.model_options(engine.kernels));
}

}  // namespace

PublishedProduct published_product(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, size_t block) {
  PublishedProduct result;
  result.gradients = gradients(loss, parameters, /*create_graph=*/true);
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> vectors;
  const std::vector<at::Tensor> inputs(parameters.begin() + static_cast<std::ptrdiff_t>(block), parameters.end());
  for (size_t i = block; i < parameters.size(); ++i) {
    const auto& gradient = result.gradients[i];
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    outputs.push_back(gradient);
    vectors.push_back(i == block ? at::ones_like(gradient) : at::zeros_like(gradient));
  }
  const auto products = torch::autograd::grad(
      outputs, inputs, vectors, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  result.row_sum = products.front().defined() ? products.front().detach() : at::zeros_like(parameters[block]);
  for (auto& gradient : result.gradients) {
    if (gradient.defined()) gradient = gradient.detach();
  }
  return result;
}

models::ModelOptions Workload::model_options(models::Kernels kernels) const {
  models::ModelOptions options;
  options.name = model;
  options.form = form == "imagenet" ? models::Form::ImageNet : models::Form::Cifar;
  options.kernels = kernels;
  options.classes = form == "imagenet" ? 1000 : 10;
  return options;
}

TimedBatch::TimedBatch(const Workload& workload) {
  torch::manual_seed(static_cast<uint64_t>(workload.seed));
  const auto size = workload.image_size();
  images = at::randn({workload.batch_size, 3, size, size});
  labels = at::randint(workload.model_options(models::Kernels::Fast).classes, {workload.batch_size}, at::kLong);
}

EngineRun::EngineRun(Engine engine, const Workload& workload, TimedBatch batch)
    : engine_(std::move(engine)),
      batch_(std::move(batch)),
      model_(seeded_model(engine_, workload)),
      optimizer_(
          optimizers::make_optimizer(*model_, engine_.settings.opt, engine_.settings.optimizer, engine_.settings.seed)),
      step_(*model_, *optimizer_, {curvature_batch_of(engine_)}),
      parameters_(model_->parameters()),
      sgd_ph_(dynamic_cast<SGDPH*>(&optimizer_->base())) {
  if (sgd_ph_ == nullptr) return;
  const auto partition = sgd_ph_->partition();
  for (const auto& entry : partition.entries) {
    if (!entry.second_order) continue;
    blocks_.push_back(entry.name);
    const auto place = std::find_if(
        parameters_.begin(), parameters_.end(), [&](const at::Tensor& p) { return p.is_same(entry.parameter); });
    block_parameters_.push_back(static_cast<size_t>(place - parameters_.begin()));
  }
}

void EngineRun::prepare(int64_t position) {
  use_operators(engine_.operators);
  if (blocks_.empty()) return;
  const auto ready = [&] {
    return position == tables::kNothingDue ? !refresh_step() : refresh_step() && next_ == position;
  };
  TORCH_INTERNAL_ASSERT(
      position < positions() && (position != tables::kNothingDue || engine_.refresh_every() > 1),
      "no such turn: ", position);
  while (!ready()) pass_turn();
}

void EngineRun::step() {
  step_.clear_gradients();
  const auto result = step_.forward(batch_.images, batch_.labels);
  if (engine_.published && refresh_step()) {
    published_backward(result);
  } else {
    step_.backward(result);
  }
  update();
}

std::string EngineRun::last_refreshed() const {
  if (sgd_ph_ == nullptr || sgd_ph_->last_step().blocks_refreshed.empty()) return "";
  return sgd_ph_->last_step().blocks_refreshed.front().name;
}

void EngineRun::update() {
  const bool applied = optimizer_->step();
  TORCH_CHECK(applied, engine_.name, ": met a value that is not finite");
  if (sgd_ph_ == nullptr) return;
  steps_ = sgd_ph_->last_step().step;
  if (!sgd_ph_->last_step().blocks_refreshed.empty()) next_ = (next_ + 1) % positions();
}

void EngineRun::pass_turn() {
  // Without gradients nothing moves. They are put back, so that a measured step finds them as ever.
  std::vector<at::Tensor> gradients;
  for (auto& parameter : parameters_) gradients.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  if (refresh_step()) supply_curvature(at::ones_like(parameters_[block_parameters_[static_cast<size_t>(next_)]]));
  update();
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = gradients[i];
}

void EngineRun::supply_curvature(const at::Tensor& row_sum) {
  const auto& block = parameters_[block_parameters_[static_cast<size_t>(next_)]];
  sgd_ph_->update_curvature(0.5 * (row_sum.detach() * block * block).sum());
}

void EngineRun::published_backward(const train::TrainingStep::Result& result) {
  auto product = published_product(result.loss, parameters_, block_parameters_[static_cast<size_t>(next_)]);
  supply_curvature(product.row_sum);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto& held = parameters_[i].mutable_grad();
    if (held.defined() && product.gradients[i].defined()) {
      held.add_(product.gradients[i]);
    } else {
      held = product.gradients[i];
    }
  }
}

}  // namespace sgdph::lab::cost
