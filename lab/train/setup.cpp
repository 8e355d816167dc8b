#include "train/setup.h"

#include "base/error.h"
#include "base/files.h"
#include "base/names.h"
#include "formats/checkpoint_file.h"
#include "models/state_dict.h"
#include "train/machine.h"
#include "train/optimizers.h"

#include <ATen/Context.h>
#include <sgdph/schedulers.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab {
namespace {

void check_device(const std::string& name) {
  try {
    const at::Device device(name);
    if (device.is_cpu()) return;
    if (!device.is_cuda()) fail("--device: '{}' is not supported; there are cpu, cuda and cuda:N", name);
    if (!at::hasCUDA()) fail("--device: no CUDA device is available to this LibTorch; use --device cpu");
  } catch (const c10::Error&) {
    fail("--device: '{}' is not a device; there are cpu, cuda and cuda:N", name);
  }
}

int64_t to_steps(double epochs, int64_t steps_per_epoch) {
  return std::llround(epochs * static_cast<double>(steps_per_epoch));
}

}  // namespace

Settings resolve(Settings s) {
  const auto& data = dataset_info(s.dataset);
  std::vector<std::string> models;
  for (const auto& info : model_infos()) models.push_back(info.name);
  check_name("model", s.model, models);
  norm_from_name(s.norm);
  fill_optimizer_defaults(s);
  check_device(s.device);
  if (s.form == "auto") s.form = data.large_images ? "imagenet" : "cifar";
  if (s.data_path.empty()) s.data_path = data.default_path;
  if (!s.workers) s.workers = std::min(data.default_workers, core_count());
  if (s.threads == 0) s.threads = core_count();
  if (s.lr_scheduler == "multistep" && !std::is_sorted(s.lr_milestones.begin(), s.lr_milestones.end())) {
    fail("--lr-milestones: the epochs must rise");
  }
  if (s.lr_warmup_epochs >= static_cast<double>(s.epochs)) {
    fail("--lr-warmup-epochs: {} leaves nothing of {} epochs", s.lr_warmup_epochs, s.epochs);
  }
  return s;
}

std::shared_ptr<ImageModel> build_model(const Settings& settings, const Dataset& data) {
  ModelOptions options;
  options.name = settings.model;
  options.form = settings.form == "imagenet" ? Form::ImageNet : Form::Cifar;
  options.norm = norm_from_name(settings.norm);
  options.width = settings.width;
  options.in_channels = data.shape().channels;
  options.classes = data.classes();
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  auto model = make_model(options);
  if (!settings.init.empty()) load_weights(*model, settings.init);
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

void check_same_run(const Settings& stored, const Settings& given) {
  auto a = stored;
  auto b = given;
  const auto old_fields = fields_of(a);
  const auto new_fields = fields_of(b);
  for (size_t i = 0; i < old_fields.size(); ++i) {
    if (old_fields[i].changeable || old_fields[i].get() == new_fields[i].get()) continue;
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
