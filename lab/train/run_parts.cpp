#include "train/run_parts.h"

#include "train/network.h"
#include "train/resolve.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace sgdph::lab::train {

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
