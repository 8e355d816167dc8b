#include "train/run_parts.h"

#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"
#include "formats/checkpoint_file.h"
#include "models/image_model.h"
#include "models/models.h"
#include "models/state_dict.h"
#include "train/resolve.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/utils.h>

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
  try {
    model.forward(at::zeros({1, shape.channels, shape.height, shape.width}));
  } catch (const c10::Error&) {
    fail(
        "{} in its {} form does not take the {}x{} images of {}; use --form {} or another --model", settings.model,
        settings.form, shape.height, shape.width, settings.dataset, settings.form == "cifar" ? "imagenet" : "cifar");
  }
  model.train();
}

}  // namespace

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
  // A batch larger than the data is refused here, before a folder is made.
  const data::Loader train(*parts.data.train, train_loader_options(parts.settings));
  const auto rest = train.images() % parts.settings.batch_size;
  parts.model = build_model(parts.settings, *parts.data.train, rest == 0 ? parts.settings.batch_size : rest);
  if (!parts.settings.init.empty() && !continued) load_weights(*parts.model, parts.settings.init);
  parts.model->to(at::Device(parts.settings.device));
  parts.optimizer =
      optimizers::make_optimizer(*parts.model, parts.settings.opt, parts.settings.optimizer, parts.settings.seed);
  // A GPU must choose the same kernels every time, or a continued run would differ.
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  return parts;
}

}  // namespace sgdph::lab::train
