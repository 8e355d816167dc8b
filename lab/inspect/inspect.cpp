#include "inspect/inspect.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "inspect/report.h"
#include "tables/statistics.h"
#include "train/libtorch.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <sgdph/hessian.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>

namespace sgdph::lab::inspect {
namespace {

constexpr double kLongWait = 60;   // seconds after which limits are worth a word
constexpr double kQuick = 2;       // seconds a product may take to be timed on the whole batch
constexpr int64_t kTrialPart = 8;  // of the batch, for a first trial
constexpr size_t kTrials = 8;
constexpr double kTrialSeconds = 1;
constexpr double kPassesPerBlock = 3;  // forward and two gradients, each about a product

/// Seconds of a product of the block, its graph there and warm, on the batch's first images: the median of a few, since
/// one may stall.
double product_seconds(const Subject& subject, const Block& block, int64_t images) {
  const auto gradient = gradients(subject.loss(images), {block.parameter}, /*create_graph=*/true)[0];
  const auto probe = at::ones_like(block.parameter).detach();
  std::vector<double> seconds;
  const auto begin = seconds_now();
  while (seconds.size() < kTrials && (seconds.size() < 2 || seconds_now() - begin < kTrialSeconds)) {
    const auto now = seconds_now();
    hessian_vector_product(gradient, block.parameter, probe, /*retain_graph=*/true);
    seconds.push_back(seconds_now() - now);
  }
  seconds.erase(seconds.begin());  // warmed up
  return tables::median_known(seconds);
}

/// The same of the whole batch; scaled up from a part of it if it takes long.
double estimated_product(const Subject& subject, const Block& block) {
  const auto images = subject.images.size(0);
  const auto part = std::clamp<int64_t>(images / kTrialPart, 2, images);
  const auto seconds = product_seconds(subject, block, part) * static_cast<double>(images) / static_cast<double>(part);
  return seconds > kQuick || part == images ? seconds : product_seconds(subject, block, images);
}

std::string place_of(const records::InspectReport& report) {
  return fmt::format("{} on {}, batch of {}; {}", report.model, report.dataset, report.batch_size, report.source);
}

settings::Settings with_values(settings::Settings settings, const optimizers::OptimizerValues& values) {
  for (const auto& [name, value] : values) settings.optimizer[name] = value;
  return settings;
}

}  // namespace

Inspection::Inspection(InspectOptions options)
    : options_(std::move(options)),
      subject_(prepare_subject(options_.settings, options_.weights, options_.float64)),
      blocks_(choose_blocks(blocks_of(*subject_.model, options_.every_1d), options_.blocks)),
      estimates_(*subject_.model, with_values(subject_.settings, options_.estimates), options_.every_1d) {
  if (!options_.picture.empty()) find_named(blocks_, "block to draw", options_.picture);
}

records::InspectReport Inspection::blank_report() const {
  const auto& s = subject_.settings;
  records::InspectReport report;
  static_cast<records::MachineFacts&>(report) = records::machine_facts(train::libtorch_version(), s.threads);
  report.model = s.model;
  report.norm = s.norm;
  report.dataset = s.dataset;
  report.width = s.width;
  report.source = subject_.source;
  report.batch_size = subject_.images.size(0);
  report.shards = static_cast<int64_t>(shard_losses().size());
  report.loss = subject_.loss().item<double>();
  report.precision = options_.float64 ? "float64" : "float32";
  const auto& estimates = estimates_.settings().optimizer;
  report.rule = estimates.at("rule").get<std::string>();
  report.probe_cycle = estimates.at("probe_cycle").get<int64_t>();
  report.hessian_momentum = estimates.at("hessian_momentum").get<double>();
  report.refreshes = options_.refreshes;
  report.seed = s.seed;
  report.planned = static_cast<int64_t>(blocks_.size());
  return report;
}

/// Of equal parts, with two images at least.
std::vector<LossFunction> Inspection::shard_losses() const {
  const auto images = subject_.images.size(0);
  const auto shards = std::min(options_.shards, images / 2);
  std::vector<LossFunction> losses;
  for (int64_t i = 0; i < shards && shards > 1; ++i) {
    losses.emplace_back([this, i, count = images / shards] { return subject_.loss(i * count, count); });
  }
  return losses;
}

InspectResult Inspection::run() {
  const InterruptGuard guard;
  InspectResult result;
  result.report = blank_report();
  int64_t products = 0;
  for (const auto& block : blocks_) products += products_of(block, options_.max_channels);
  // The first block is the dearest: its product goes through the whole network.
  const auto product = estimated_product(subject_, blocks_.front());
  const auto seconds =
      product * (static_cast<double>(products) + kPassesPerBlock * static_cast<double>(blocks_.size()));
  print(
      stderr, "{} blocks, {} Hessian-vector products, about {} ({:.3g} s for one of the first block){}\n",
      blocks_.size(), products, duration_text(seconds), product,
      seconds > kLongWait ? "; --blocks and --max-channels limit it" : "");

  const auto begin = seconds_now();
  {
    Progress progress(ProgressStyle::Auto, static_cast<double>(products), seconds);
    const auto parameters = subject_.model->parameters();
    for (size_t i = 0; i < blocks_.size() && !interrupted(); ++i) {
      const auto& block = blocks_[i];
      const auto wanted = static_cast<double>(products_of(block, options_.max_channels));
      progress.begin(
          fmt::format("[{}/{}] {}, {} channels", i + 1, blocks_.size(), block.name, block.channels()), wanted);
      int64_t done = 0;
      const auto hessian = measure_hessian(
          [&] { return subject_.loss(); }, parameters, block, options_.max_channels,
          [&] { progress.at(static_cast<double>(++done) / wanted); });
      result.report.products += done;
      if (hessian.channels.empty()) break;
      const auto held = hessian.finite() ? estimates_.of(hessian, options_.refreshes) : std::vector<HeldEstimate>();
      result.report.rows.push_back(block_row(hessian, held));
      if (hessian.finite()) {
        const auto deviation = deviation_over(shard_losses(), block, hessian.channels, subject_.settings.seed);
        const auto diagonal = hessian.diagonal().norm().item<double>();
        result.report.rows.back().over_shards = diagonal == 0 ? records::kUnknown : deviation / diagonal;
      }
      result.views.emplace_back(hessian, result.report.rows.back());
    }
  }
  result.report.seconds = seconds_now() - begin;
  result.report.verdict = verdict_of(result.report.rows);
  result.drawn = typical_view(result.views);
  for (size_t i = 0; i < result.views.size(); ++i) {
    if (result.views[i].row.block == options_.picture) result.drawn = i;
  }
  result.interrupted = interrupted();
  return result;
}

void write_inspect_report(const InspectResult& result, const std::filesystem::path& folder) {
  present(result.report)
      .write(folder / "inspect", {tables::TableFormat::Json, tables::TableFormat::Markdown, tables::TableFormat::Csv});
  if (result.views.empty()) return;
  write_own_file(folder / "inspect.svg", {block_picture(result.views[result.drawn], place_of(result.report))});
}

}  // namespace sgdph::lab::inspect
