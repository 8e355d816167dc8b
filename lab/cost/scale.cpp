#include "cost/scale.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "cost/measurement.h"
#include "models/image_model.h"
#include "train/libtorch.h"

#include <fmt/format.h>
#include <sgdph/sgd_ph.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace sgdph::lab::cost {
namespace {

constexpr double kBytesOfValue = 4;
constexpr double kForwardPart = 1. / 3;  // of a first-order step
constexpr int64_t kCifarImages = 50000;
constexpr int64_t kImageNetImages = 1281167;
constexpr double kHalf = 0.5;

int64_t rounded_up(int64_t total, int64_t part) {
  return (total + part - 1) / part;
}

/// Of bytes round a ring, by bandwidth alone.
double transfer_seconds(double bytes, const Link& link, int64_t ranks) {
  const auto w = static_cast<double>(ranks);
  return 2 * (w - 1) / w * bytes * 8 / (link.gigabits * 1e9);
}

double ring_hops(int64_t messages, const Link& link, int64_t ranks) {
  return static_cast<double>(messages * 2 * (ranks - 1)) * link.hop_microseconds * 1e-6;
}

double tree_hops(const Link& link, int64_t ranks) {
  return 2 * std::ceil(std::log2(static_cast<double>(ranks))) * link.hop_microseconds * 1e-6;
}

/// Of the block at this place in the network: what lies behind it, so that the mean is the measured one.
double product_of(const StepFacts& facts, int64_t block) {
  return facts.product_seconds * 2 * static_cast<double>(facts.blocks - block) / static_cast<double>(facts.blocks + 1);
}

/// The first, and so the dearest, block of each step of a round in which up to `most` neighbours are refreshed at once.
std::vector<int64_t> first_blocks(int64_t blocks, int64_t most) {
  std::vector<int64_t> firsts;
  for (int64_t next = 0; next < blocks;) {
    firsts.push_back(next);
    const auto left = blocks - next;
    next += rounded_up(left, rounded_up(left, most));
  }
  return firsts;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.{}f}", 1e3 * seconds, seconds < 0.01 ? 2 : seconds < 0.1 ? 1 : 0);
}

std::string count_text(double count) {
  return fmt::format("{:.{}f}", count, count < 10 ? 1 : 0);
}

/// The ranks of the first row that is so; 0 for none.
int64_t first_ranks(const std::vector<ScaleRow>& rows, const std::function<bool(const ScaleRow&)>& is_so) {
  const auto found = std::find_if(rows.begin(), rows.end(), is_so);
  return found == rows.end() ? 0 : found->ranks;
}

StepFacts facts_of(const ScaleOptions& options) {
  StepFacts facts;
  facts.batch_size = options.workload.batch_size;
  facts.bucket_bytes = options.bucket_bytes;
  facts.epoch_images = options.epoch_images != 0             ? options.epoch_images
                       : options.workload.form == "imagenet" ? kImageNetImages
                                                             : kCifarImages;
  facts.seconds = options.step_seconds;
  facts.product_seconds = options.product_seconds;
  const auto model = models::make_model(options.workload.model_options(models::Kernels::Fast));
  for (const auto& entry : SGDPH(*model).partition().entries) {
    facts.parameters += entry.parameter.numel();
    if (!entry.second_order) continue;
    ++facts.blocks;
    facts.block_values += entry.parameter.numel();
  }
  return facts;
}

/// Of a first-order step and a product; false if interrupted.
bool measure_step(const ScaleOptions& options, StepFacts& facts) {
  const auto& plain = baseline_engine(models::Kernels::Fast).name;
  const std::string own = optimizers::kOwnOptimizer;
  Measurement measurement;
  measurement.engines = {plain, own};
  measurement.workload = options.workload;
  measurement.limit = options.limit;
  measurement.threads = options.threads;
  const InterruptGuard guard;
  Progress progress(ProgressStyle::Auto, options.limit.seconds, options.limit.seconds);
  progress.begin(
      fmt::format("{}, batch {}: time of a step", options.workload.model, options.workload.batch_size),
      options.limit.seconds);
  const auto end = run_measurement(measurement, progress);
  if (interrupted()) return false;
  if (end.result.is_null()) fail("the step of {} could not be measured: {}", options.workload.model, end.error);
  for (const auto& engine : end.result.get<GroupTimes>().engines) {
    if (engine.engine == plain) facts.seconds = engine.seconds().value;
  }
  for (const auto& engine : end.result.get<GroupTimes>().engines) {
    if (engine.engine == own) facts.product_seconds = std::max(0., (engine.ratio().value - 1) * facts.seconds);
  }
  return true;
}

tables::Table link_table(const ScaleReport& report) {
  tables::Table table;
  table.columns = {"ranks", "gradients", "of it hops", "curvature, ring", "curvature, tree"};
  for (const auto& row : report.rows) {
    table.rows.push_back(
        {std::to_string(row.ranks), milliseconds(row.transfer + row.hops), milliseconds(row.hops),
         milliseconds(row.small_ring), milliseconds(row.small_tree)});
  }
  return table;
}

tables::Table step_table(const ScaleReport& report) {
  tables::Table table;
  table.columns = {"ranks",      "SGDM",       "SGD-PH, after", "SGD-PH",           "SGD-PH, spread",
                   "images / s", "efficiency", "refreshes",     "refreshes, spread"};
  for (const auto& row : report.rows) {
    table.rows.push_back(
        {std::to_string(row.ranks), milliseconds(row.first_order), milliseconds(row.sgd_ph_after),
         milliseconds(row.sgd_ph), milliseconds(row.spread), fmt::format("{:.0f}", row.images_per_second),
         tables::percent_text(row.efficiency), count_text(row.refreshes), count_text(row.spread_refreshes)});
  }
  return table;
}

tables::Document readable(const ScaleReport& report) {
  const auto& step = report.step;
  tables::Document document;
  document.paragraph(fmt::format(
      "A model, not a measurement: {} ({}), {} images a rank, {:g} Gb/s and {:g} us a hop, gradients in {}.",
      report.model, report.form, step.batch_size, report.link.gigabits, report.link.hop_microseconds,
      lab::count_text(static_cast<size_t>(step.buckets()), "bucket")));
  document.paragraph(fmt::format(
      "In it, {}: a first-order step {} ms, a Hessian product {} ms in the mean over {} blocks; {:.1f} MB of "
      "gradients, "
      "{:.1f} kB of curvature ({:.2g} %).",
      report.measured ? fmt::format(
                            "measured here ({}, {}, LibTorch {})", report.cpu,
                            lab::count_text(static_cast<size_t>(report.threads), "thread"), report.libtorch)
                      : "as given",
      milliseconds(step.seconds), milliseconds(step.product_seconds), step.blocks, step.gradient_bytes() / 1e6,
      static_cast<double>(step.block_values) * kBytesOfValue / 1e3,
      100 * static_cast<double>(step.block_values) / static_cast<double>(std::max<int64_t>(step.parameters, 1))));
  document.table("What travels in a step, ms", link_table(report));
  document.table("A step, ms", step_table(report));
  document.paragraph(
      "SGD-PH: a block a step in turn, gradients travelling during backward pass and product; after: when all is "
      "computed. spread: refresh spread, a block for each rank; images / s and efficiency are its. refreshes: of a "
      "block in an epoch.",
      "small");
  return document.list(report.remarks);
}

tables::Table flat(const ScaleReport& report) {
  tables::Table table;
  table.columns = {"ranks",       "transfer",      "hops",          "small_ring", "small_tree",
                   "first_order", "sgd_ph_after",  "sgd_ph",        "spread",     "images_per_second",
                   "efficiency",  "spread_blocks", "spread_period", "refreshes",  "spread_refreshes"};
  for (const auto& row : report.rows) {
    auto& cells = table.rows.emplace_back();
    const auto values = nlohmann::json(row);
    for (const auto& name : table.columns) cells.emplace_back(values.at(name).dump());
  }
  return table;
}

}  // namespace

double StepFacts::gradient_bytes() const {
  return static_cast<double>(parameters) * kBytesOfValue;
}

int64_t StepFacts::buckets() const {
  return static_cast<int64_t>(std::ceil(gradient_bytes() / static_cast<double>(bucket_bytes)));
}

ScaleRow scale_row(const StepFacts& facts, const Link& link, int64_t ranks) {
  ScaleRow row;
  row.ranks = ranks;
  row.transfer = transfer_seconds(facts.gradient_bytes(), link, ranks);
  row.hops = ring_hops(facts.buckets(), link, ranks);
  row.small_ring = ring_hops(1, link, ranks);
  row.small_tree = tree_hops(link, ranks);
  row.spread_blocks = std::min(ranks, std::max<int64_t>(facts.blocks, 1));

  const double forward = kForwardPart * facts.seconds, backward = facts.seconds - forward;
  const double gradients = row.transfer + row.hops;
  const auto overlapped = [&](double product) { return forward + std::max(backward + product, gradients); };
  const auto mean_of = [&](const std::vector<int64_t>& blocks) {
    double sum = 0;
    for (const auto block : blocks) sum += overlapped(product_of(facts, block));
    return blocks.empty() ? overlapped(0) : sum / static_cast<double>(blocks.size());
  };
  const double block_bytes =
      static_cast<double>(facts.block_values) * kBytesOfValue / static_cast<double>(std::max<int64_t>(facts.blocks, 1));
  const auto curvature = [&](int64_t blocks) {
    if (facts.blocks == 0) return 0.;
    return row.small_ring + transfer_seconds(static_cast<double>(blocks) * block_bytes, link, ranks);
  };
  const auto each = first_blocks(facts.blocks, 1), neighbours = first_blocks(facts.blocks, row.spread_blocks);
  row.first_order = overlapped(0);
  row.sgd_ph_after = facts.seconds + facts.product_seconds + gradients + curvature(1);
  row.sgd_ph = mean_of(each) + curvature(1);
  row.spread = mean_of(neighbours) + curvature(row.spread_blocks);

  const auto images = static_cast<double>(ranks * facts.batch_size);
  const double steps = static_cast<double>(facts.epoch_images) / images;
  row.images_per_second = images / row.spread;
  row.efficiency = (facts.seconds + facts.product_seconds) / row.spread;
  row.spread_period = static_cast<int64_t>(neighbours.size());
  row.refreshes = steps / static_cast<double>(std::max<size_t>(each.size(), 1));
  row.spread_refreshes = steps / static_cast<double>(std::max<size_t>(neighbours.size(), 1));
  return row;
}

std::vector<std::string> remarks_of(const std::vector<ScaleRow>& rows) {
  std::vector<std::string> remarks;
  if (const auto ranks = first_ranks(rows, [](const ScaleRow& row) { return row.efficiency < kHalf; }); ranks != 0) {
    remarks.push_back(
        fmt::format("Stops scaling: from {} ranks on a rank does less than half of what it does alone.", ranks));
  } else if (!rows.empty()) {
    remarks.push_back(
        fmt::format("Scales up to {} ranks: each does at least half of what it does alone.", rows.back().ranks));
  }
  if (const auto ranks = first_ranks(rows, [](const ScaleRow& row) { return row.hops > row.transfer; }); ranks != 0) {
    remarks.push_back(fmt::format(
        "From {} ranks on hops outweigh bytes, which a faster link does not help: fewer buckets or a tree do. Gloo's "
        "all-reduce is a ring for every size.",
        ranks));
  }
  const auto seldom = [&](double ScaleRow::*refreshes, const char* how) {
    const auto ranks = first_ranks(rows, [&](const ScaleRow& row) { return row.*refreshes < 1; });
    if (ranks == 0) return;
    remarks.push_back(fmt::format("From {} ranks on a block is refreshed less than once an epoch {}.", ranks, how));
  };
  seldom(&ScaleRow::refreshes, "in turn (refresh cyclic)");
  seldom(&ScaleRow::spread_refreshes, "even with refresh spread");
  if (const auto ranks = first_ranks(rows, [](const ScaleRow& row) { return row.ranks > 1 && row.spread_period == 1; });
      ranks != 0) {
    remarks.push_back(fmt::format(
        "From {} ranks on every block is refreshed at each step of spread, at the dearest product's price: more ranks "
        "give less noise and no more refreshes.",
        ranks));
  }
  return remarks;
}

ScaleReport model_scale(const ScaleOptions& options) {
  CostOptions checked;
  checked.models = {options.workload.model};
  checked.form = options.workload.form;
  check_cost_options(checked);
  ScaleReport report;
  static_cast<records::MachineFacts&>(report) = records::machine_facts(train::libtorch_version(), options.threads);
  report.model = options.workload.model;
  report.form = options.workload.form;
  report.link = options.link;
  report.step = facts_of(options);
  report.measured = options.step_seconds == 0;
  if (report.measured && !measure_step(options, report.step)) return report;
  for (const auto ranks : options.ranks) report.rows.push_back(scale_row(report.step, options.link, ranks));
  report.remarks = remarks_of(report.rows);
  return report;
}

tables::Presentation present(const ScaleReport& report) {
  return {readable(report), flat(report), report};
}

}  // namespace sgdph::lab::cost
