#include "train/ranks.h"

#include "base/error.h"
#include "base/machine.h"
#include "dist/address.h"
#include "train/libtorch.h"
#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>

namespace sgdph::lab::train {
namespace {

bool must_agree(const settings::Field& field) {
  return (field.result || field.in_step) && !field.per_rank;
}

std::string flag_of(const settings::Field& field) {
  return field.flags.substr(field.flags.rfind("--"));
}

}  // namespace

void take_environment(settings::Settings& settings, const dist::Environment& environment, bool ranks_given) {
  if (ranks_given && settings.ranks != environment.size) {
    fail(
        "--ranks: {} are asked for, and {}; start them with torchrun, mpirun or srun (docs/many-machines.md)",
        settings.ranks,
        environment.alone() ? "this is one process"
                            : fmt::format("{} started {}", environment.launcher, environment.size));
  }
  settings.ranks = environment.size;
  if (environment.alone()) return;
  if (settings.threads == 0 && environment.cores > 0) {
    settings.threads = std::min(core_count(), environment.cores);
  } else if (settings.threads == 0) {
    // By hand nobody says how many share this host, but then a loopback address does.
    const bool one_host = environment.address == "localhost" || dist::is_loopback(environment.address);
    const auto here = one_host ? environment.size : environment.local_size;
    settings.threads = std::max<int64_t>(1, core_count() / std::max<int64_t>(1, here));
  }
  if (settings.device.rfind("cuda", 0) == 0) settings.device = fmt::format("cuda:{}", environment.local_rank);
}

dist::Facts version_facts() {
  return {{"the version of sgdph", sgdph_version()}, {"the version of LibTorch", libtorch_version()}};
}

dist::Facts facts_of(const settings::Settings& settings) {
  auto copy = settings;
  auto facts = version_facts();
  for (const auto& field : settings::fields_of(copy)) {
    if (must_agree(field)) facts[flag_of(field)] = field.get();
  }
  return facts;
}

dist::Facts facts_of(const settings::Sources& given) {
  std::vector<const settings::Layer*> layers;
  for (const auto& recipe : given.recipes) {
    layers.push_back(&recipe.run);
    for (const auto& [optimizer, layer] : recipe.optimizers) layers.push_back(&layer);
  }
  layers.push_back(&given.options);
  auto facts = version_facts();
  settings::Settings scratch;
  for (const auto& field : settings::fields_of_all_optimizers(scratch)) {
    if (!must_agree(field)) continue;
    for (const auto* layer : layers) {
      if (const auto found = layer->find(field.key); found != layer->end()) facts[flag_of(field)] = found->second.value;
    }
  }
  return facts;
}

dist::Facts facts_of(const data::Dataset& images, const std::string& kind) {
  const auto shape = images.shape();
  const auto of = [&](const char* what) { return fmt::format("the {} of the {} images", what, kind); };
  return {
      {of("number"), images.size()},
      {of("classes"), images.classes()},
      {of("shape"), {shape.channels, shape.height, shape.width}}};
}

double timeout_of(const settings::Sources& given, const std::string& path) {
  settings::Settings scratch;
  std::error_code ignored;
  const std::filesystem::path place(path);
  const auto stored = (std::filesystem::is_directory(place, ignored) ? place : place.parent_path()) / kSettingsFile;
  if (!path.empty() && std::filesystem::exists(stored, ignored)) {
    // What is wrong with the run is said by who reads it for good.
    try {
      scratch.dist_timeout = settings::read_stored_settings(stored.string()).dist_timeout;
    } catch (const std::exception&) {
    }
  }
  const auto add = [&](const settings::Layer& layer) {
    if (const auto found = layer.find("dist_timeout"); found != layer.end()) settings::apply_layer(scratch, {*found});
  };
  for (const auto& recipe : given.recipes) add(recipe.run);
  add(given.options);
  return scratch.dist_timeout;
}

settings::Settings on_other_ranks(const settings::Settings& stored, settings::Settings& given, bool batches_given) {
  auto same = stored;
  const auto images = stored.ranks * stored.accumulate * stored.batch_size;
  if (!batches_given) {
    const auto batches = stored.ranks * stored.accumulate;
    if (batches % given.ranks != 0) {
      fail(
          "a step of this run has {} images, {} batches of {}, which {} ranks cannot share; give --batch-size and "
          "--accumulate whose product is a {}th of them, or another number of ranks",
          images, batches, stored.batch_size, given.ranks, given.ranks);
    }
    given.accumulate = batches / given.ranks;
  } else if (given.ranks * given.accumulate * given.batch_size != images) {
    fail(
        "a step of this run has {} images; {} ranks with --accumulate {} and --batch-size {} would have {}", images,
        given.ranks, given.accumulate, given.batch_size, given.ranks * given.accumulate * given.batch_size);
  }
  same.ranks = given.ranks;
  same.accumulate = given.accumulate;
  same.batch_size = given.batch_size;
  if (same.device.rfind("cuda", 0) == 0 && given.device.rfind("cuda", 0) == 0) same.device = given.device;
  return same;
}

}  // namespace sgdph::lab::train
