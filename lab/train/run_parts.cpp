#include "train/run_parts.h"

#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"
#include "data/split.h"
#include "formats/checkpoint_file.h"
#include "models/image_model.h"
#include "models/models.h"
#include "models/state_dict.h"
#include "optimizers/options.h"
#include "train/resolve.h"
#include "train/training_step.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <sgdph/frozen_statistics.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/utils.h>

#include <unordered_set>

namespace sgdph::lab::train {
namespace {

/// Batch norm has nothing to normalise by in a batch of one value per channel.
void check_smallest_batch(
    models::ImageModel& model, const settings::Settings& settings, const data::ImageShape& shape, int64_t images) {
  if (images > 1) return;
  // The trial must leave no trace in running statistics and random state.
  const c10::InferenceMode inference;
  std::vector<at::Tensor> buffers;
  for (const auto& buffer : model.buffers()) buffers.push_back(buffer.clone());
  auto generator = at::globalContext().defaultGenerator(at::kCPU);
  const auto random = generator.get_state();
  try {
    model.forward(at::zeros({images, shape.channels, shape.height, shape.width}));
  } catch (const c10::Error&) {
    fail(
        "the last batch of an epoch has one image, which {} with {} norm cannot train on; choose another --batch-size "
        "or "
        "--train-limit",
        settings.model, settings.norm);
  }
  generator.set_state(random);
  const auto now = model.buffers();
  for (size_t i = 0; i < buffers.size(); ++i) now[i].copy_(buffers[i]);
}

/// Refuses images the network is too deep for, before a run begins.
void check_takes(models::ImageModel& model, const settings::Settings& settings, const data::ImageShape& shape) {
  const c10::InferenceMode inference;
  model.eval();
  const auto image = at::zeros({1, shape.channels, shape.height, shape.width});
  try {
    model.forward(image);
  } catch (const c10::Error&) {
    fail(
        "{} in its {} form does not take the {}x{} images of {}; use --form {} or another --model", settings.model,
        settings.form, shape.height, shape.width, settings.dataset, settings.form == "cifar" ? "imagenet" : "cifar");
  }
  try {
    if (settings.bf16()) scores_of(model, image, true);
  } catch (const c10::Error& error) {
    fail(
        "--amp bf16: {} with {} norm and {} kernels does not work with autocast here: {}", settings.model,
        settings.norm, settings.kernels, error.what_without_backtrace());
  }
  model.train();
}

/// What LibTorch says where the products that the optimizer needs cannot be computed; empty if they can. Where those of
/// LibTorch 1.13's convolutions in bfloat16 are wrong it says so only if channels differ, as they do in every network
/// here.
std::string failing_product(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters, const std::string& optimizer) {
  const bool blocks = optimizers::optimizer_entry(optimizer).info.traits.has_blocks;
  std::vector<at::Tensor> asked;
  for (const auto& parameter : parameters) {
    if (parameter.requires_grad() && (!blocks || parameter.dim() == 1)) asked.push_back(parameter);
  }
  try {
    std::vector<at::Tensor> gradients;
    for (auto& gradient : torch::autograd::grad({loss}, asked, {}, true, true, true)) {
      if (gradient.defined() && gradient.requires_grad()) gradients.push_back(gradient.sum());
    }
    if (!gradients.empty()) torch::autograd::grad(gradients, asked, {}, true, false, true);
  } catch (const c10::Error& error) {
    const std::string words = error.what_without_backtrace();
    return words.substr(0, words.find('\n'));
  }
  return "";
}

/// Refuses a network for an optimizer that needs second derivatives and finds none, before a run begins.
void check_second_derivatives(
    models::ImageModel& model, optimizers::TrainingOptimizer& optimizer, const settings::Settings& settings,
    const data::ImageShape& shape) {
  if (!optimizer.curvature_due()) return;
  const FrozenStatistics frozen(model);
  auto generator = at::globalContext().defaultGenerator(at::kCPU);
  const auto random = generator.get_state();
  const at::Device device(settings.device);
  const auto images = at::zeros({2, shape.channels, shape.height, shape.width}, at::TensorOptions().device(device));
  const auto labels = at::zeros({2}, at::TensorOptions(at::kLong).device(device));
  const auto loss = at::cross_entropy_loss(scores_of(model, images, settings.bf16()), labels);
  const auto missing = without_second_derivative(loss, model.parameters());
  const auto half = settings.bf16() && missing.empty() ? failing_product(loss, model.parameters(), settings.opt) : "";
  generator.set_state(random);
  if (!half.empty()) {
    fail(
        "--amp bf16: {} with {} norm and {} kernels has no second derivatives with autocast here, which {} needs: {}; "
        "train without --amp, or use an optimizer without curvature",
        settings.model, settings.norm, settings.kernels, settings.opt, half);
  }
  if (missing.empty()) return;
  fail(
      "{} needs second derivatives, which this network lacks ({}); use another --norm or --kernels, or an optimizer "
      "without curvature such as --opt sgdm",
      settings.opt, missing);
}

}  // namespace

std::string without_second_derivative(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> asked;
  for (const auto& parameter : parameters) {
    if (parameter.requires_grad()) asked.push_back(parameter);
  }
  const auto gradients = torch::autograd::grad({loss}, asked, {}, true, true, true);
  // Where a formula ends, PyTorch puts a node that only throws when it is reached.
  std::vector<torch::autograd::Node*> open;
  std::unordered_set<torch::autograd::Node*> seen;
  const auto visit = [&](torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) open.push_back(node);
  };
  for (const auto& gradient : gradients) {
    if (gradient.defined()) visit(gradient.grad_fn().get());
  }
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (const auto* error = dynamic_cast<torch::autograd::Error*>(node)) return error->msg;
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
  return "";
}

std::shared_ptr<models::ImageModel> build_model(
    const settings::Settings& settings, const data::Dataset& data, int64_t smallest_batch) {
  models::ModelOptions options;
  options.name = settings.model;
  options.form = settings.form == "imagenet" ? models::Form::ImageNet : models::Form::Cifar;
  options.norm = models::norm_from_name(settings.norm);
  options.width = settings.width;
  options.stem_stride = settings.stem_stride;
  options.kernels = settings.kernels == "stock" ? models::Kernels::Stock : models::Kernels::Fast;
  options.in_channels = data.shape().channels;
  options.classes = data.classes();
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  auto model = models::make_model(options);
  check_takes(*model, settings, data.shape());
  check_smallest_batch(*model, settings, data.shape(), smallest_batch);
  return model;
}

void load_weights(models::ImageModel& model, const std::string& file) {
  const auto bytes = read_file(file);
  if (formats::is_checkpoint(bytes)) {
    models::load_state_dict(model, formats::parse_checkpoint(bytes, file).section("model", file), file);
  } else {
    models::load_state_dict(model, bytes, file);
  }
}

std::unique_ptr<optimizers::TrainingOptimizer> make_optimizer(
    const models::ImageModel& model, const settings::Settings& s) {
  return optimizers::make_optimizer(model, s.opt, s.optimizer, s.seed, {s.norm_weight_decay, s.bias_weight_decay});
}

data::LoaderOptions train_loader_options(const settings::Settings& s) {
  data::LoaderOptions options;
  options.batch_size = s.batch_size;
  options.workers = *s.workers;
  options.seed = static_cast<uint64_t>(s.seed);
  options.limit = s.train_limit;
  options.skip_damaged = s.skip_damaged;
  options.pin_memory = s.device != "cpu";
  return options;
}

RunParts prepare_run(const settings::Settings& settings, bool continued) {
  RunParts parts;
  parts.settings = resolve(settings);
  at::set_num_threads(static_cast<int>(parts.settings.threads));
  parts.data = data::open_dataset(parts.settings.dataset, parts.settings.data_path, parts.settings.augment);
  if (parts.settings.val_split > 0) {
    const auto images = data::held_out_images(parts.settings.val_split, parts.data.train->size());
    data::hold_out(parts.data, images, static_cast<uint64_t>(parts.settings.split_seed));
  }
  // A batch larger than the data is refused here, before a folder is made.
  const data::Loader train(*parts.data.train, train_loader_options(parts.settings));
  const auto rest = train.images() % parts.settings.batch_size;
  parts.model = build_model(parts.settings, *parts.data.train, rest == 0 ? parts.settings.batch_size : rest);
  if (!parts.settings.init.empty() && !continued) load_weights(*parts.model, parts.settings.init);
  parts.model->to(at::Device(parts.settings.device));
  parts.optimizer = make_optimizer(*parts.model, parts.settings);
  check_second_derivatives(*parts.model, *parts.optimizer, parts.settings, parts.data.train->shape());
  // A GPU must choose the same kernels every time, or a continued run would differ.
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  return parts;
}

}  // namespace sgdph::lab::train
