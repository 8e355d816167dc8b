#include "study/summary.h"

#include "optimizers/options.h"
#include "study/reading.h"
#include "tables/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <list>

namespace sgdph::lab::study {
namespace {

int64_t side_by_side(const records::RunRecord& run) {
  const auto settings = run.header.find("settings");
  return settings == run.header.end() ? 1 : settings->value("side_by_side", int64_t{1});
}

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
    row.side_by_side = std::max(row.side_by_side, side_by_side(*run));
  }
  row.top1 = tables::statistic(top1);
  row.best_top1 = tables::statistic(best);
  row.validated = !validation.empty();
  row.val_top1 = tables::statistic(validation);
  row.ema_top1 = tables::statistic(averaged);
  row.seconds = tables::statistic(seconds).mean;
  row.memory = tables::statistic(memory).mean;
  return row;
}

tables::Table flat_table(const std::vector<SummaryRow>& rows) {
  tables::Table table;
  table.columns = {"optimizer",       "runs",          "diverged", "top1_mean",        "top1_std",
                   "best_top1_mean",  "best_top1_std", "seconds",  "seconds_relative", "peak_memory_bytes",
                   "memory_relative", "best"};
  for (const auto& row : rows) {
    table.rows.push_back(
        {row.optimizer, std::to_string(row.top1.count), std::to_string(row.diverged),
         tables::number_text(row.top1.mean), tables::number_text(row.top1.deviation),
         tables::number_text(row.best_top1.mean), tables::number_text(row.best_top1.deviation),
         tables::number_text(row.seconds), tables::number_text(row.relative_seconds), tables::number_text(row.memory),
         tables::number_text(row.relative_memory), row.best ? "1" : "0"});
  }
  return table;
}

nlohmann::json row_json(const SummaryRow& row) {
  nlohmann::json json{
      {"optimizer", row.optimizer}, {"planned", row.planned}, {"diverged", row.diverged},        {"top1", row.top1},
      {"best_top1", row.best_top1}, {"seconds", row.seconds}, {"peak_memory_bytes", row.memory}, {"best", row.best}};
  if (row.validated) json["val_top1"] = row.val_top1;
  if (row.ema_top1.count > 0) json["ema_top1"] = row.ema_top1;
  if (row.other_length > 0) json["other_length"] = row.other_length;
  if (row.side_by_side > 1) json["side_by_side"] = row.side_by_side;
  if (row.relative_seconds) json["seconds_relative"] = *row.relative_seconds;
  if (row.relative_memory) json["memory_relative"] = *row.relative_memory;
  return json;
}

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
  auto best = -std::numeric_limits<double>::infinity();
  for (auto& row : rows) {
    if (row.top1.count == 0) continue;
    if (sgdm != rows.end()) {
      row.relative_seconds = row.seconds / sgdm->seconds;
      row.relative_memory = row.memory / sgdm->memory;
    }
    best = std::max(best, row.top1.mean);
  }
  for (auto& row : rows) row.best = rows.size() > 1 && row.top1.count > 0 && row.top1.mean == best;
  return rows;
}

tables::Table summary_table(const std::vector<SummaryRow>& rows) {
  tables::Table table;
  int64_t most = 1;
  for (const auto& row : rows) most = std::max(most, row.side_by_side);
  // Neighbours cost time: such figures are no measurement of the optimizer alone.
  const auto time = most == 1 ? std::string("time") : fmt::format("time, {} at once", most);
  const bool validated = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.validated; });
  table.columns = {"optimizer", "test accuracy %", validated ? "test at best validation %" : "best epoch %"};
  if (validated) table.columns.push_back("validation %");
  const bool averaged = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.ema_top1.count > 0; });
  if (averaged) table.columns.push_back("test, averaged weights %");
  table.columns.insert(table.columns.end(), {time, "time / SGDM", "peak memory", "memory / SGDM", "runs"});
  for (const auto& row : rows) {
    const bool any = row.top1.count > 0;
    auto& cells = table.rows.emplace_back();
    cells = {row.label, tables::spread_text(row.top1), tables::spread_text(row.best_top1)};
    if (validated) cells.emplace_back(tables::spread_text(row.val_top1));
    if (averaged) cells.emplace_back(tables::spread_text(row.ema_top1));
    cells.insert(
        cells.end(),
        {any ? fmt::format("{:.1f} s", row.seconds) : "-", tables::ratio_text(row.relative_seconds.value_or(0)),
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
