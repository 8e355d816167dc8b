#include "cost/cost.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cost/measurement.h"
#include "cost/report.h"
#include "train/libtorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

namespace sgdph::lab::cost {
namespace {

// For estimates only.
constexpr double kStartSeconds = 1;   // of a process
constexpr double kStepSeconds = 0.5;  // of a plain step, where it was not measured
constexpr double kRoundsAtLeast = 5;  // and one to warm up, but slow engines in every second only

/// A measurement, what it is called, and about how long it takes.
struct PlannedMeasurement {
  Measurement measurement;
  std::string title;
  double seconds = 0;
};

std::vector<Workload> workloads_of(const CostOptions& options) {
  std::vector<Workload> workloads;
  for (const auto& model : options.models) {
    for (const auto batch_size : options.batch_sizes) {
      workloads.push_back({model, options.form, batch_size, options.seed});
    }
  }
  return workloads;
}

/// Seconds of a plain step of each network at one image, from its smallest batch.
std::map<std::string, double> seconds_per_image(const CostOptions& options) {
  std::map<std::string, double> seconds;
  Progress quiet(ProgressStyle::Quiet);
  const auto batch_size = *std::min_element(options.batch_sizes.begin(), options.batch_sizes.end());
  for (const auto& model : options.models) {
    if (interrupted()) break;
    Measurement measurement;
    measurement.engines = {baseline_engine(models::Kernels::Fast).name};
    measurement.workload = {model, options.form, batch_size, options.seed};
    measurement.limit.rounds = 2;
    measurement.threads = options.threads;
    const auto end = run_measurement(measurement, quiet);
    if (end.result.is_null()) continue;
    seconds[model] = end.result.get<GroupTimes>().engines.front().seconds().value / static_cast<double>(batch_size);
  }
  return seconds;
}

/// What is to be done for a workload: memory first, since it tells whether an engine fits.
std::vector<PlannedMeasurement> measurements_of(
    const CostOptions& options, const Workload& workload, const std::vector<Engine>& measured, double step) {
  Measurement measurement;
  measurement.workload = workload;
  measurement.limit = options.limit;
  measurement.every_position = options.limit.every_position;
  measurement.threads = options.threads;
  const auto place = fmt::format("{}, batch {}", workload.model, workload.batch_size);
  std::vector<PlannedMeasurement> measurements;
  double round = 0;
  std::vector<std::string> names;
  for (const auto& engine : measured) {
    round += engine.expected * step;
    names.push_back(engine.name);
    if (!options.memory) continue;
    measurement.kind = "memory";
    measurement.engines = {engine.name};
    const double steps = !engine.has_blocks() ? 2 : options.limit.every_position ? 40 : 4;
    measurements.push_back(
        {measurement, fmt::format("{}: memory of {}", place, engine.label),
         kStartSeconds + steps * engine.expected * step});
  }
  measurement.kind = "time";
  measurement.engines = names;
  const auto seconds = options.limit.rounds > 0 ? static_cast<double>(options.limit.rounds + 1) * round
                                                : std::max(options.limit.seconds, kRoundsAtLeast * round);
  measurements.push_back({measurement, place + ": time", kStartSeconds + seconds});
  return measurements;
}

/// What the measurements of a workload gave.
struct Findings {
  std::map<std::string, EngineMemory> memory;
  std::map<std::string, EngineTimes> times;
  std::map<std::string, std::string> notes;
  std::vector<double> fast_to_stock;
};

/// Leaves out engines that did not fit into memory; false if nothing is left to compare.
bool only_what_fits(Measurement& measurement, const Findings& findings) {
  auto& names = measurement.engines;
  const auto lost = [&](const std::string& name) { return findings.notes.count(name) != 0; };
  for (const auto& name : names) {
    if (engine(name).is_baseline() && lost(name)) return false;
  }
  names.erase(std::remove_if(names.begin(), names.end(), lost), names.end());
  return !names.empty();
}

void run_planned(PlannedMeasurement& planned, Findings& findings, Progress& progress) {
  if (planned.measurement.kind == "time" && !only_what_fits(planned.measurement, findings)) return;
  progress.begin(planned.title, planned.seconds);
  auto end = run_measurement(planned.measurement, progress);
  if (end.result.is_null()) {
    if (interrupted()) return;
    for (const auto& name : planned.measurement.engines) findings.notes[name] = end.error;
  } else if (planned.measurement.kind == "memory") {
    findings.memory[planned.measurement.engines.front()] = end.result.get<EngineMemory>();
  } else {
    auto times = end.result.get<GroupTimes>();
    for (auto& engine : times.engines) findings.times[engine.engine] = std::move(engine);
    findings.fast_to_stock = std::move(times.fast_to_stock);
  }
}

void add_rows(
    records::CostReport& report, const Workload& workload, const std::vector<Engine>& measured, Findings& findings) {
  for (const auto& engine : measured) {
    const auto& reference = findings.memory[baseline_engine(engine.kernels).name];
    auto row = make_row(workload, engine, findings.times[engine.name], findings.memory[engine.name], reference);
    row.note = findings.notes[engine.name];
    if (row.ratio.count > 0 || row.held.mean > 0 || !row.note.empty()) report.rows.push_back(std::move(row));
  }
  for (const auto& [name, memory] : findings.memory) {
    report.resident_known = report.resident_known && (memory.resident_known || memory.steps.empty());
  }
  if (!findings.fast_to_stock.empty()) {
    report.fast_to_stock.push_back(
        {workload.model, workload.batch_size, tables::median_figure(std::move(findings.fast_to_stock))});
  }
}

}  // namespace

std::vector<int64_t> sweep_batch_sizes() {
  return {8, 16, 32, 64, 128, 256};
}

std::vector<std::string> sweep_models() {
  return {"vgg11", "vgg19", "resnet18", "resnet50"};
}

void check_cost_options(const CostOptions& options) {
  for (const auto& model : options.models) {
    if (find_named(models::model_infos(), "model", model).small && options.form == "imagenet") {
      fail("--form: model {} has the CIFAR form only", model);
    }
  }
}

CostResult measure_cost(const CostOptions& options) {
  check_cost_options(options);
  const InterruptGuard guard;
  records::CostReport report;
  static_cast<records::MachineFacts&>(report) = records::machine_facts(train::libtorch_version(), options.threads);
  report.form = options.form;
  report.seed = options.seed;
  const auto measured = with_references(options.engines);
  const auto workloads = workloads_of(options);
  const auto per_image = workloads.size() > 1 ? seconds_per_image(options) : std::map<std::string, double>();
  std::vector<std::vector<PlannedMeasurement>> plan;
  double total = 0;
  for (const auto& workload : workloads) {
    const auto found = per_image.find(workload.model);
    const auto step =
        found == per_image.end() ? kStepSeconds : found->second * static_cast<double>(workload.batch_size);
    plan.push_back(measurements_of(options, workload, measured, step));
    for (const auto& measurement : plan.back()) total += measurement.seconds;
  }
  if (workloads.size() > 1) print(stderr, "{} workloads, about {}\n", workloads.size(), duration_text(total));
  Progress progress(ProgressStyle::Auto, total, total);
  for (size_t i = 0; i < workloads.size() && !interrupted(); ++i) {
    Findings findings;
    for (auto& measurement : plan[i]) {
      if (!interrupted()) run_planned(measurement, findings, progress);
    }
    add_rows(report, workloads[i], measured, findings);
  }
  return {std::move(report), interrupted()};
}

void write_cost_report(const records::CostReport& report, const std::filesystem::path& folder, bool positions) {
  present(report, positions).write(folder / "cost", {tables::TableFormat::Json, tables::TableFormat::Markdown});
  present(report).write(folder / "cost", {tables::TableFormat::Csv});
  write_own_file(folder / "cost.svg", {cost_picture(report)});
}

}  // namespace sgdph::lab::cost
