#include "study/summary.h"

#include "settings/optimizer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <numeric>

namespace sgdph::lab {
namespace {

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
}

SummaryRow row_of(const RunGroup& group) {
  SummaryRow row;
  row.optimizer = group.optimizer;
  row.label = group.label;
  row.planned = group.planned;
  std::vector<double> top1;
  std::vector<double> best;
  std::vector<double> seconds;
  std::vector<double> memory;
  for (const auto* run : group.runs) {
    row.diverged += run->status == "diverged" ? 1 : 0;
    if (run->status != "finished") continue;
    top1.push_back(run->top1);
    best.push_back(run->best_top1);
    seconds.push_back(run->train_seconds);
    memory.push_back(static_cast<double>(run->peak_memory));
  }
  row.top1 = statistic(top1);
  row.best_top1 = statistic(best);
  row.seconds = mean_of(seconds);
  row.memory = mean_of(memory);
  return row;
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}x", *ratio) : "-";
}

std::string runs_text(const SummaryRow& row) {
  auto text = fmt::format("{}/{}", row.top1.count + row.diverged, row.planned);
  return row.diverged == 0 ? text : fmt::format("{}, {} diverged", text, row.diverged);
}

/// The table with the best accuracy marked.
Table marked(const std::vector<SummaryRow>& rows, bool markdown) {
  auto table = summary_table(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& accuracy = table.rows[i][1];
    if (rows[i].best) accuracy = fmt::format(markdown ? "**{}**" : "{} *", accuracy);
  }
  return table;
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string to_csv(const std::vector<SummaryRow>& rows) {
  Table table;
  table.columns = {"optimizer",       "runs",          "diverged", "top1_mean",        "top1_std",
                   "best_top1_mean",  "best_top1_std", "seconds",  "seconds_relative", "peak_memory_bytes",
                   "memory_relative", "best"};
  for (const auto& row : rows) {
    table.rows.push_back(
        {row.optimizer, std::to_string(row.top1.count), std::to_string(row.diverged), number(row.top1.mean),
         number(row.top1.deviation), number(row.best_top1.mean), number(row.best_top1.deviation), number(row.seconds),
         number(row.relative_seconds), number(row.memory), number(row.relative_memory), row.best ? "1" : "0"});
  }
  return csv_table(table);
}

nlohmann::json to_json(const Statistic& figure) {
  return {{"mean", figure.mean}, {"std", figure.deviation}, {"n", figure.count}};
}

nlohmann::json to_json(const SummaryRow& row) {
  nlohmann::json json{
      {"optimizer", row.optimizer},
      {"planned", row.planned},
      {"diverged", row.diverged},
      {"top1", to_json(row.top1)},
      {"best_top1", to_json(row.best_top1)},
      {"seconds", row.seconds},
      {"peak_memory_bytes", row.memory},
      {"best", row.best}};
  if (row.relative_seconds) json["seconds_relative"] = *row.relative_seconds;
  if (row.relative_memory) json["memory_relative"] = *row.relative_memory;
  return json;
}

}  // namespace

Statistic statistic(const std::vector<double>& values) {
  Statistic result;
  result.count = values.size();
  result.mean = mean_of(values);
  if (values.size() > 1) {
    double sum = 0;
    for (const auto value : values) sum += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
  return result;
}

std::string accuracy_text(const Statistic& figure) {
  if (figure.count == 0) return "-";
  return figure.count == 1 ? fmt::format("{:.2f}", figure.mean)
                           : fmt::format("{:.2f} +- {:.2f}", figure.mean, figure.deviation);
}

std::vector<SummaryRow> summarise(const std::vector<PlannedRun>& plan) {
  std::vector<RunGroup> groups;
  std::list<RunRecord> records;
  for (const auto& planned : plan) {
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.optimizer == planned.optimizer; });
    if (group == groups.end()) {
      group = groups.insert(group, RunGroup{planned.optimizer, optimizer_info(planned.optimizer).label, 0, {}});
    }
    ++group->planned;
    if (auto run = read_run_record(planned.folder)) group->runs.push_back(&records.emplace_back(std::move(*run)));
  }
  return summarise_groups(groups);
}

std::vector<SummaryRow> summarise_groups(const std::vector<RunGroup>& groups) {
  std::vector<SummaryRow> rows;
  rows.reserve(groups.size());
  for (const auto& group : groups) rows.push_back(row_of(group));
  const auto sgdm = std::find_if(
      rows.begin(), rows.end(), [](const auto& row) { return row.optimizer == "sgdm" && row.top1.count > 0; });
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

Table summary_table(const std::vector<SummaryRow>& rows) {
  Table table;
  table.columns = {"optimizer",   "test accuracy %", "best epoch %",  "time",
                   "time / SGDM", "peak memory",     "memory / SGDM", "runs"};
  for (const auto& row : rows) {
    const bool any = row.top1.count > 0;
    table.rows.push_back(
        {row.label, accuracy_text(row.top1), accuracy_text(row.best_top1),
         any ? fmt::format("{:.1f} s", row.seconds) : "-", ratio_text(row.relative_seconds),
         any ? fmt::format("{:.0f} MB", row.memory / 1e6) : "-", ratio_text(row.relative_memory), runs_text(row)});
  }
  return table;
}

std::string render(const std::vector<SummaryRow>& rows, TableFormat format) {
  switch (format) {
    case TableFormat::Text: return text_table(marked(rows, false));
    case TableFormat::Markdown: return markdown_table(marked(rows, true));
    case TableFormat::Csv: return to_csv(rows);
    case TableFormat::Json: {
      auto list = nlohmann::json::array();
      for (const auto& row : rows) list.push_back(to_json(row));
      return list.dump(2) + "\n";
    }
  }
  return "";
}

}  // namespace sgdph::lab
