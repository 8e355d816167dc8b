#include "train/setup.h"

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/names.h"
#include "formats/checkpoint_file.h"
#include "models/state_dict.h"
#include "train/curvature_control.h"
#include "train/optimizers.h"
#include "train/training_step.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>
#include <fmt/ranges.h>
#include <sgdph/schedulers.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

namespace sgdph::lab {
namespace {

void check_device(const std::string& name) {
  try {
    const at::Device device(name);
    if (device.is_cpu()) return;
    if (!device.is_cuda()) fail("--device: '{}' is not supported; there are cpu, cuda and cuda:N", name);
    const auto count = static_cast<int64_t>(torch::cuda::device_count());
    if (std::max<int64_t>(0, device.index()) >= count) {
      fail("--device: there is no '{}', LibTorch sees {} CUDA devices; use --device cpu", name, count);
    }
  } catch (const c10::Error&) {
    fail("--device: '{}' is not a device; there are cpu, cuda and cuda:N", name);
  }
}

void check_schedule(const Settings& s) {
  if (s.lr_scheduler == "multistep") {
    const auto& epochs = s.lr_milestones;
    if (epochs.empty()) fail("--lr-scheduler multistep: give the epochs with --lr-milestones");
    if (epochs.front() < 1 ||
        std::adjacent_find(epochs.begin(), epochs.end(), std::greater_equal<>()) != epochs.end()) {
      fail("--lr-milestones: the epochs must be positive and rise, got {}", fmt::join(epochs, ","));
    }
  } else if (!s.lr_milestones.empty()) {
    fail("--lr-milestones: belongs to --lr-scheduler multistep, not {}", s.lr_scheduler);
  }
  if (s.lr_scheduler == "cosine" && s.lr_min > *s.lr) {
    fail("--lr-min: {} is above the learning rate {}", s.lr_min, *s.lr);
  }
  if (s.lr_warmup_epochs >= static_cast<double>(s.epochs)) {
    fail("--lr-warmup-epochs: {} leaves nothing of {} epochs", s.lr_warmup_epochs, s.epochs);
  }
}

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

/// Batch norm has nothing to normalise by in a batch of one value per channel.
void check_smallest_batch(ImageModel& model, const Settings& settings, const ImageShape& shape, int64_t images) {
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
void check_takes(ImageModel& model, const Settings& settings, const ImageShape& shape) {
  const c10::InferenceMode inference;
  model.eval();
  try {
    model.forward(at::zeros({1, shape.channels, shape.height, shape.width}));
  } catch (const c10::Error&) {
    fail(
        "{} in its {} form does not take the {}x{} images of {}; use --form {} or another --model", settings.model,
        settings.form, shape.height, shape.width, settings.dataset, settings.form == "cifar" ? "imagenet" : "cifar");
  }
  model.train();
}

int64_t to_steps(double epochs, int64_t steps_per_epoch) {
  return std::llround(epochs * static_cast<double>(steps_per_epoch));
}

}  // namespace

Settings resolve(Settings s) {
  const auto& data = dataset_info(s.dataset);
  find_named(model_infos(), "model", s.model);
  norm_from_name(s.norm);
  fill_optimizer_defaults(s);
  check_device(s.device);
  if (s.form == "auto") s.form = data.large_images ? "imagenet" : "cifar";
  if (s.data_path.empty()) s.data_path = data.default_path;
  if (!s.workers) s.workers = std::min(data.default_workers, core_count());
  if (s.threads == 0) s.threads = core_count();
  s.data_path = absolute(s.data_path);
  s.init = absolute(s.init);
  if (s.opt == "sgdm" && *s.momentum >= 1) fail("--momentum: must be below 1, got {}", *s.momentum);
  if (s.curvature_batch) batch_part_from_text(*s.curvature_batch);
  check_curvature_control(s);
  check_schedule(s);
  return s;
}

std::shared_ptr<ImageModel> build_model(const Settings& settings, const Dataset& data, int64_t smallest_batch) {
  ModelOptions options;
  options.name = settings.model;
  options.form = settings.form == "imagenet" ? Form::ImageNet : Form::Cifar;
  options.norm = norm_from_name(settings.norm);
  options.width = settings.width;
  options.kernels = settings.kernels == "stock" ? Kernels::Stock : Kernels::Fast;
  options.in_channels = data.shape().channels;
  options.classes = data.classes();
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  auto model = make_model(options);
  check_takes(*model, settings, data.shape());
  check_smallest_batch(*model, settings, data.shape(), smallest_batch);
  return model;
}

void load_weights(ImageModel& model, const std::string& file) {
  const auto bytes = read_file(file);
  if (is_checkpoint(bytes)) {
    load_state_dict(model, parse_checkpoint(bytes, file).section("model", file), file);
  } else {
    load_state_dict(model, bytes, file);
  }
}

std::unique_ptr<Scheduler> make_schedule(
    torch::optim::Optimizer& optimizer, const Settings& s, int64_t steps_per_epoch) {
  const Warmup warmup{to_steps(s.lr_warmup_epochs, steps_per_epoch), s.lr_warmup_decay};
  if (s.lr_scheduler == "cosine") {
    return std::make_unique<CosineLR>(optimizer, s.epochs * steps_per_epoch - warmup.steps, s.lr_min, warmup);
  }
  if (s.lr_scheduler == "step") {
    return std::make_unique<StepLR>(optimizer, s.lr_step_size * steps_per_epoch, s.lr_gamma, warmup);
  }
  std::vector<int64_t> steps;  // none: constant
  if (s.lr_scheduler == "multistep") {
    for (const auto epoch : s.lr_milestones) steps.push_back(epoch * steps_per_epoch);
  }
  return std::make_unique<MultiStepLR>(optimizer, steps, s.lr_gamma, warmup);
}

void check_same_run(const Settings& stored, const Settings& given, bool same_cost) {
  auto a = stored;
  auto b = given;
  fill_optimizer_defaults(a);  // a run of an earlier version lacks the settings added since
  fill_optimizer_defaults(b);
  const auto old_fields = fields_of(a);
  const auto new_fields = fields_of(b);
  for (size_t i = 0; i < old_fields.size(); ++i) {
    if (old_fields[i].get() == new_fields[i].get()) continue;
    const bool costs = old_fields[i].key == "threads" || old_fields[i].key == "workers";
    if (old_fields[i].changeable && !(same_cost && costs)) continue;
    fail(
        "{} is {} in this run, not {}; a run is continued with its own settings, start a new one for others",
        old_fields[i].key, old_fields[i].get().dump(), new_fields[i].get().dump());
  }
  if (stored.epochs != given.epochs && stored.lr_scheduler == "cosine") {
    fail(
        "epochs is {} in this run and its cosine schedule ends there; start a new run for {}", stored.epochs,
        given.epochs);
  }
}

}  // namespace sgdph::lab
