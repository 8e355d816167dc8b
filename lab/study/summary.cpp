#include "study/summary.h"

#include "optimizers/options.h"
#include "study/reading.h"
#include "tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <list>
#include <set>

namespace sgdph::lab::study {
namespace {

/// 0 if the record does not say.
int64_t test_images(const records::RunRecord& run) {
  const auto logged = run.header.value("test_images", nlohmann::json());
  return logged.is_number_integer() ? std::max<int64_t>(0, logged.get<int64_t>()) : 0;
}

/// Runs that are finished, all of one length: a mean over others would be of nothing.
std::vector<const records::RunRecord*> comparable_runs(const RunGroup& group) {
  std::vector<const records::RunRecord*> finished;
  auto epochs = static_cast<size_t>(group.epochs);
  for (const auto* run : group.runs) {
    if (run->status != "finished") continue;
    finished.push_back(run);
    if (group.epochs == 0) epochs = std::max(epochs, run->epochs.size());
  }
  const auto other = [&](const auto* run) { return run->epochs.size() != epochs; };
  finished.erase(std::remove_if(finished.begin(), finished.end(), other), finished.end());
  return finished;
}

SummaryRow row_of(const RunGroup& group) {
  SummaryRow row;
  row.optimizer = group.optimizer;
  row.label = group.label;
  row.planned = group.planned;
  std::vector<double> top1;
  std::vector<double> best;
  std::vector<double> validation;
  std::vector<double> averaged;
  std::vector<double> seconds;
  std::vector<double> memory;
  std::set<int64_t> threads;
  for (const auto* run : group.runs) {
    row.diverged += run->status == "diverged" ? 1 : 0;
    row.other_length += run->status == "finished" ? 1 : 0;
  }
  for (const auto* run : comparable_runs(group)) {
    --row.other_length;
    const auto images = test_images(*run);
    row.test_images = row.test_images == 0 ? images : std::min(row.test_images, images);
    top1.push_back(run->top1);
    best.push_back(run->best_top1);
    if (run->validated) validation.push_back(run->val_top1);
    if (run->ema_top1) averaged.push_back(*run->ema_top1);
    seconds.push_back(run->train_seconds);
    memory.push_back(static_cast<double>(run->peak_memory));
    row.side_by_side = std::max(row.side_by_side, run->side_by_side);
    if (run->threads > 0) threads.insert(run->threads);
  }
  row.threads.assign(threads.begin(), threads.end());
  row.top1 = tables::statistic(top1);
  row.best_top1 = tables::statistic(best);
  row.validated = !validation.empty();
  row.val_top1 = tables::statistic(validation);
  row.ema_top1 = tables::statistic(averaged);
  row.seconds = tables::statistic(seconds).mean;
  row.memory = tables::statistic(memory).mean;
  return row;
}

/// What the best epoch of its runs was chosen by.
const char* best_by(const SummaryRow& row) {
  return row.validated ? "validation" : "test";
}

tables::Table flat_table(const std::vector<SummaryRow>& rows) {
  tables::Table table;
  table.columns = {"optimizer",       "runs",          "diverged",      "top1_mean",        "top1_std",
                   "best_top1_mean",  "best_top1_std", "seconds",       "seconds_relative", "peak_memory_bytes",
                   "memory_relative", "best",          "planned",       "other_length",     "best_by",
                   "val_top1_mean",   "val_top1_std",  "ema_top1_mean", "ema_top1_std",     "side_by_side",
                   "threads"};
  // Nothing where there is no figure: 0 would be one.
  const auto mean = [](const tables::Statistic& figure) {
    return figure.count == 0 ? std::string() : tables::number_text(figure.mean);
  };
  const auto deviation = [](const tables::Statistic& figure) {
    return figure.count == 0 ? std::string() : tables::number_text(figure.deviation);
  };
  for (const auto& row : rows) {
    table.rows.push_back(
        {row.optimizer,
         std::to_string(row.top1.count),
         std::to_string(row.diverged),
         tables::number_text(row.top1.mean),
         tables::number_text(row.top1.deviation),
         tables::number_text(row.best_top1.mean),
         tables::number_text(row.best_top1.deviation),
         tables::number_text(row.seconds),
         tables::number_text(row.relative_seconds),
         tables::number_text(row.memory),
         tables::number_text(row.relative_memory),
         row.best ? "1" : "0",
         std::to_string(row.planned),
         std::to_string(row.other_length),
         best_by(row),
         mean(row.val_top1),
         deviation(row.val_top1),
         mean(row.ema_top1),
         deviation(row.ema_top1),
         std::to_string(row.side_by_side),
         fmt::format("{}", fmt::join(row.threads, "/"))});
  }
  return table;
}

nlohmann::json row_json(const SummaryRow& row) {
  nlohmann::json json{{"optimizer", row.optimizer},       {"planned", row.planned}, {"diverged", row.diverged},
                      {"other_length", row.other_length}, {"top1", row.top1},       {"best_top1", row.best_top1},
                      {"best_by", best_by(row)},          {"seconds", row.seconds}, {"peak_memory_bytes", row.memory},
                      {"side_by_side", row.side_by_side}, {"threads", row.threads}, {"best", row.best}};
  if (row.validated) json["val_top1"] = row.val_top1;
  if (row.ema_top1.count > 0) json["ema_top1"] = row.ema_top1;
  if (row.relative_seconds) json["seconds_relative"] = *row.relative_seconds;
  if (row.relative_memory) json["memory_relative"] = *row.relative_memory;
  return json;
}

/// How times were taken, where it is not the same for all rows.
class TimeMarks {
 public:
  explicit TimeMarks(const std::vector<SummaryRow>& rows) {
    const SummaryRow* first = nullptr;
    for (const auto& row : rows) {
      if (row.top1.count == 0) continue;
      most_ = std::max(most_, row.side_by_side);
      first = first == nullptr ? &row : first;
      neighbours_differ_ = neighbours_differ_ || row.side_by_side != first->side_by_side;
      threads_differ_ = threads_differ_ || row.threads != first->threads || row.threads.size() > 1;
    }
  }
  // Neighbours cost time: such figures are no measurement of the optimizer alone.
  std::string heading() const {
    return most_ == 1 ? "time" : fmt::format("time, {}{} at once", neighbours_differ_ ? "up to " : "", most_);
  }
  std::string cell(const SummaryRow& row) const {
    auto text = fmt::format("{:.1f} s", row.seconds);
    if (neighbours_differ_ && row.side_by_side > 1) text += fmt::format(", {} at once", row.side_by_side);
    if (threads_differ_ && !row.threads.empty()) {
      text +=
          fmt::format(", {} thread{}", fmt::join(row.threads, "/"), row.threads == std::vector<int64_t>{1} ? "" : "s");
    }
    return text;
  }

 private:
  int64_t most_ = 1;
  bool neighbours_differ_ = false;
  bool threads_differ_ = false;
};

}  // namespace

std::vector<SummaryRow> summarise(const std::vector<PlannedRun>& plan) {
  std::vector<RunGroup> groups;
  std::list<records::RunRecord> records;
  for (const auto& planned : plan) {
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.optimizer == planned.optimizer; });
    if (group == groups.end()) {
      group = groups.insert(
          group, RunGroup{planned.optimizer, optimizers::optimizer_label(planned.optimizer), 0, {}, planned.epochs});
    }
    ++group->planned;
    if (auto run = records::read_run_record(planned.folder))
      group->runs.push_back(&records.emplace_back(std::move(*run)));
  }
  return summarise_groups(groups);
}

std::vector<SummaryRow> summarise_groups(const std::vector<RunGroup>& groups) {
  std::vector<SummaryRow> rows;
  rows.reserve(groups.size());
  for (const auto& group : groups) rows.push_back(row_of(group));
  const auto sgdm = std::find_if(rows.begin(), rows.end(), [](const auto& row) {
    return row.optimizer == optimizers::baseline_optimizer().info.name && row.top1.count > 0;
  });
  const SummaryRow* first = nullptr;
  for (auto& row : rows) {
    if (row.top1.count == 0) continue;
    if (sgdm != rows.end()) {
      row.relative_seconds = row.seconds / sgdm->seconds;
      row.relative_memory = row.memory / sgdm->memory;
    }
    if (first == nullptr || row.top1.mean > first->top1.mean) first = &row;
  }
  for (auto& row : rows) row.best = rows.size() > 1 && row.top1.count > 0 && is_within_noise(*first, row);
  return rows;
}

tables::Table summary_table(const std::vector<SummaryRow>& rows) {
  tables::Table table;
  const TimeMarks marks(rows);
  const bool validated = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.validated; });
  table.columns = {"optimizer", "test accuracy %", validated ? "test at best validation %" : "best epoch %"};
  if (validated) table.columns.push_back("validation %");
  const bool averaged = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.ema_top1.count > 0; });
  if (averaged) table.columns.push_back("test, averaged weights %");
  table.columns.insert(table.columns.end(), {marks.heading(), "time / SGDM", "peak memory", "memory / SGDM", "runs"});
  for (const auto& row : rows) {
    const bool any = row.top1.count > 0;
    auto& cells = table.rows.emplace_back();
    cells = {row.label, tables::spread_text(row.top1), tables::spread_text(row.best_top1)};
    if (validated) cells.emplace_back(tables::spread_text(row.val_top1));
    if (averaged) cells.emplace_back(tables::spread_text(row.ema_top1));
    cells.insert(
        cells.end(),
        {any ? marks.cell(row) : "-", tables::ratio_text(row.relative_seconds.value_or(0)),
         any ? fmt::format("{:.0f} MB", row.memory / 1e6) : "-", tables::ratio_text(row.relative_memory.value_or(0)),
         tables::runs_text(row.top1.count + row.diverged, row.planned, row.diverged) +
             (row.other_length == 0 ? "" : fmt::format(", {} of another length", row.other_length))});
    cells[1].strong = row.best;
  }
  return table;
}

tables::Presentation present(const std::vector<SummaryRow>& rows) {
  tables::Presentation shown;
  shown.readable.table("", summary_table(rows)).paragraph(reading(rows));
  shown.flat = flat_table(rows);
  shown.whole = nlohmann::json::array();
  for (const auto& row : rows) shown.whole.push_back(row_json(row));
  return shown;
}

}  // namespace sgdph::lab::study
