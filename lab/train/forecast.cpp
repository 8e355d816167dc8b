#include "train/forecast.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "data/loader.h"
#include "tables/statistics.h"
#include "train/run_parts.h"
#include "train/training_step.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>

namespace sgdph::lab::train {
namespace {

constexpr double kStartSeconds = 2;  // of a process, with its data
constexpr int64_t kFewImages = 8;    // the first look; slow networks are timed with no more
constexpr double kShortEnough = 1;   // seconds of a step that is worth timing whole
constexpr int kTimedSteps = 5;
constexpr int kTimedTests = 3;
constexpr int64_t kLongestCycle = 16;

/// Seconds for an image: in training and in testing.
struct ImageTimes {
  double train = 0;
  double test = 0;
};

data::Batch few_images(const data::Dataset& data, const settings::Settings& settings, int64_t images) {
  auto options = train_loader_options(settings);
  options.batch_size = images;
  options.workers = 0;
  data::Loader loader(data, options);
  loader.start(0);
  auto batch = *loader.next();
  const at::Device device(settings.device);
  return {batch.images.to(device), batch.labels.to(device)};
}

/// What decides data and network: runs that agree in it are prepared once.
nlohmann::json network_of(const settings::Settings& settings) {
  auto copy = settings;
  auto json = nlohmann::json::object();
  for (const auto& field : settings::fields_of(copy)) {
    if (field.network) json[field.key] = field.get();
  }
  return json;
}

/// What decides the cost of a step beside data and network.
nlohmann::json step_kind(const settings::Settings& settings) {
  nlohmann::json kind{settings.opt, settings.clip_grad_norm > 0};
  // Which way an optimizer takes is said by words, flags and counts; how far it goes, by numbers.
  for (const auto& [name, value] : settings.optimizer) {
    if (!value.is_number_float() && !value.is_array()) kind.push_back({name, value});
  }
  return kind;
}

ImageTimes time_images(RunParts& parts, settings::Settings settings) {
  // The guard's second product happens once for each block.
  if (const auto guard = settings.optimizer.find("shift_guard"); guard != settings.optimizer.end())
    guard->second = false;
  const auto optimizer = make_optimizer(*parts.model, settings);
  const TrainingStep step(*parts.model, *optimizer, TrainingStep::options_of(settings));
  const auto timed_step = [&](const data::Batch& batch) {
    const auto begin = seconds_now();
    step.clear_gradients();
    step.backward(step.forward(batch.images, batch.labels));
    optimizer->step();
    return seconds_now() - begin;
  };
  const auto most = std::min(settings.batch_size, parts.data.train->size());
  auto images = std::min(kFewImages, most);
  parts.model->train();
  auto batch = few_images(*parts.data.train, settings, images);
  timed_step(batch);  // warms up
  const auto first = std::min(timed_step(batch), timed_step(batch));
  if (first / static_cast<double>(images) * static_cast<double>(most) < kShortEnough && images < most) {
    images = most;
    batch = few_images(*parts.data.train, settings, images);
    timed_step(batch);
  }
  // Medians, since on a machine with other work single steps stall; one for each step between two refreshes.
  const auto cycle = std::min<int64_t>(settings.option<int64_t>("refresh_every", 1), kLongestCycle);
  std::vector<std::vector<double>> steps(static_cast<size_t>(cycle));
  for (int64_t i = 0; i < kTimedSteps * cycle && !interrupted(); ++i) {
    steps[static_cast<size_t>(i % cycle)].push_back(timed_step(batch));
  }
  if (interrupted()) return {};
  ImageTimes times;
  for (auto& of_phase : steps) times.train += tables::median(std::move(of_phase)) / static_cast<double>(cycle * images);
  const at::NoGradGuard no_gradients;
  parts.model->eval();
  std::vector<double> tests;
  for (int i = 0; i <= kTimedTests; ++i) {
    const auto begin = seconds_now();
    static_cast<void>(scores_of(*parts.model, batch.images, settings.bf16()).sum().item<double>());
    if (i > 0) tests.push_back(seconds_now() - begin);  // the first warms up
  }
  times.test = tables::median(std::move(tests)) / static_cast<double>(images);
  return times;
}

double images_used(int64_t all, int64_t limit) {
  return static_cast<double>(limit > 0 ? std::min(all, limit) : all);
}

}  // namespace

void check_inputs(const std::vector<settings::Settings>& runs) {
  std::optional<RunParts> parts;
  nlohmann::json network;
  for (const auto& settings : runs) {
    auto wanted = network_of(settings);
    if (!parts || wanted != network) parts = prepare_run(settings);
    network = std::move(wanted);
    make_optimizer(*parts->model, settings);
  }
}

std::vector<double> forecast_seconds(const std::vector<TrainingAhead>& runs) {
  std::vector<double> seconds(runs.size());
  std::map<std::string, std::vector<size_t>> networks;  // so that each is built once
  for (size_t i = 0; i < runs.size(); ++i) {
    networks[network_of(runs[i].settings).dump()].push_back(i);
  }
  for (const auto& [network, members] : networks) {
    auto parts = prepare_run(runs[members.front()].settings);
    std::map<std::string, ImageTimes> known;
    for (const auto i : members) {
      if (interrupted()) return std::vector<double>(runs.size());
      const auto& s = runs[i].settings;
      const auto kind = step_kind(s).dump();
      if (known.count(kind) == 0) known[kind] = time_images(parts, s);
      const auto& times = known[kind];
      const auto test = times.test * images_used(parts.data.test->size(), s.test_limit);
      const auto& held_out = parts.data.validation;
      const auto measured = held_out ? times.test * static_cast<double>(held_out->size()) : test;
      const auto epoch = times.train * images_used(parts.data.train->size(), s.train_limit) + measured;
      // With validation the test set is read at the end, by the last weights and the best.
      seconds[i] = kStartSeconds + epoch * static_cast<double>(runs[i].epochs) + (held_out ? 2 * test : 0);
    }
  }
  return seconds;
}

}  // namespace sgdph::lab::train
