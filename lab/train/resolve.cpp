#include "train/resolve.h"

#include "base/error.h"
#include "base/machine.h"
#include "base/names.h"
#include "data/datasets.h"
#include "models/models.h"
#include "train/libtorch.h"
#include "train/schedule.h"
#include "train/training_step.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace sgdph::lab::train {
namespace {

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

void check_eval_every(const settings::Settings& s) {
  if (s.eval_every > 1 && s.eval_every != std::floor(s.eval_every)) {
    fail("--eval-every: {} is no whole number of steps; below 1 it is a fraction of an epoch", s.eval_every);
  }
}

}  // namespace

settings::Settings resolve(settings::Settings s) {
  s = fill_in(std::move(s));
  check_schedule(s);
  check_eval_every(s);
  return s;
}

void check_given(const settings::Layer& given, const settings::Settings& settings) {
  settings::Settings usual;
  for (const auto& field : settings::fields_of(usual)) {
    const auto option = given.find(field.key);
    // Back to what it is by itself is nothing to ask about.
    if (option == given.end() || !field.idle || field.get() == option->second.value) continue;
    if (const auto why = field.idle(settings); !why.empty()) fail("{}: {}", option->second.where, why);
  }
}

settings::Settings fill_in(settings::Settings s) {
  const auto& data = data::dataset(s.dataset);
  find_named(models::model_infos(), "model", s.model);
  models::norm_from_name(s.norm);
  s.optimizer = optimizers::resolve_optimizer(s.opt, s.optimizer);
  check_device(s.device);
  if (s.form == "auto") s.form = data.large_images() ? "imagenet" : "cifar";
  if (s.data_path.empty()) s.data_path = data.default_path;
  if (!s.workers) s.workers = std::min(data.default_workers(), core_count());
  if (s.threads == 0) s.threads = default_threads();
  s.data_path = absolute(s.data_path);
  s.init = absolute(s.init);
  return s;
}

void check_same_run(const settings::Settings& stored, const settings::Settings& given, bool same_cost) {
  auto a = stored;
  auto b = given;
  a.optimizer =
      optimizers::resolve_optimizer(a.opt, a.optimizer);  // a run of an earlier version lacks what was added since
  b.optimizer = optimizers::resolve_optimizer(b.opt, b.optimizer);
  const auto old_fields = settings::fields_of(a);
  const auto new_fields = settings::fields_of(b);
  for (size_t i = 0; i < old_fields.size(); ++i) {
    if (old_fields[i].get() == new_fields[i].get()) continue;
    if (old_fields[i].resumable && !(same_cost && old_fields[i].cost)) continue;
    const auto text = [](const settings::Field& field) { return field.is_set() ? field.get().dump() : "not set"; };
    fail(
        "{} is {} in this run, not {}; a run is continued with its own settings, start a new one for others",
        old_fields[i].key, text(old_fields[i]), new_fields[i].is_set() ? text(new_fields[i]) : "left out");
  }
  const auto& schedule = stored.lr_scheduler;
  if (stored.epochs != given.epochs && (schedule == "cosine" || schedule == "linear")) {
    fail(
        "epochs is {} in this run and its {} schedule ends there; start a new run for {}", stored.epochs, schedule,
        given.epochs);
  }
  if (stored.epochs != given.epochs && stored.model_ema) {
    fail(
        "epochs is {} in this run and how fast its --model-ema forgets depends on that; start a new run for {}",
        stored.epochs, given.epochs);
  }
}

}  // namespace sgdph::lab::train
