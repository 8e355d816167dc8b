#include "report/tables.h"

#include "settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sgdph::lab {
namespace {

using nlohmann::json;

std::string cell_text(const json& value) {
  return value.is_null() ? "-" : plain_text(value);
}

ReportTable plain(const Table& table) {
  ReportTable result{table.columns, {}};
  for (const auto& row : table.rows) {
    std::vector<TableCell> cells;
    for (const auto& text : row) cells.push_back({text});
    result.rows.push_back(std::move(cells));
  }
  return result;
}

/// Bars behind a column of ratios; a value of 0 has none.
void add_bars(ReportTable& table, const std::string& column, const std::vector<double>& values) {
  const auto place = std::find(table.columns.begin(), table.columns.end(), column) - table.columns.begin();
  const auto largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) {
    table.rows[i][static_cast<size_t>(place)].bar = largest > 0 ? std::max(0., values[i] / largest) : 0;
  }
}

void add_references(ReportTable& table, const Task& task) {
  std::set<std::string> sources;
  for (const auto& series : task.series) {
    if (series.reference) sources.insert(series.reference->source);
  }
  if (sources.empty()) return;
  const auto name = sources.size() == 1 ? *sources.begin() : std::string("reference");
  table.columns.insert(table.columns.begin() + 2, {name + " %", "difference"});
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto& series = task.series[i];
    TableCell value{"-"};
    TableCell difference{"-"};
    if (const auto& figure = series.reference) {
      value.text = figure->deviation ? fmt::format("{:.2f} +- {:.2f}", figure->value, *figure->deviation)
                                     : fmt::format("{:.2f}", figure->value);
      if (sources.size() > 1) value.text += fmt::format(" ({})", figure->source);
      if (series.summary.top1.count > 0)
        difference.text = fmt::format("{:+.2f}", series.summary.top1.mean - figure->value);
    }
    table.rows[i].insert(table.rows[i].begin() + 2, {value, difference});
  }
}

/// The value that all runs of the series have for a key, or all they have.
std::string values_in(const Series& series, const std::string& key) {
  std::vector<std::string> values;
  for (const auto* run : series.runs) {
    auto text = cell_text(run->settings.value(key, json()));
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(values, " | "));
}

/// The seed, and settings that leave the result alone; those we do not know are taken to matter.
std::set<std::string> settings_left_out() {
  std::set<std::string> keys{"seed"};
  Settings known;
  for (const auto& field : fields_of(known)) {
    if (field.leaves_result_alone()) keys.insert(field.key);
  }
  return keys;
}

/// The settings that matter: one text for each series.
std::map<std::string, std::vector<std::string>> settings_by_key(const Task& task) {
  std::set<std::string> keys;
  for (const auto& series : task.series) {
    for (const auto* run : series.runs) {
      for (const auto& [key, value] : run->settings.items()) keys.insert(key);
    }
  }
  for (const auto& key : settings_left_out()) keys.erase(key);
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& key : keys) {
    for (const auto& series : task.series) {
      if (!series.runs.empty()) all[key].push_back(values_in(series, key));
    }
  }
  return all;
}

bool all_same(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& value) { return value == values.front(); });
}

}  // namespace

ReportTable result_table(const Task& task) {
  std::vector<SummaryRow> rows;
  std::vector<double> seconds;
  std::vector<double> memory;
  for (const auto& series : task.series) {
    rows.push_back(series.summary);
    seconds.push_back(series.summary.relative_seconds.value_or(0));
    memory.push_back(series.summary.relative_memory.value_or(0));
  }
  auto table = plain(summary_table(rows));
  add_bars(table, "time / SGDM", seconds);
  add_bars(table, "memory / SGDM", memory);
  for (size_t i = 0; i < rows.size(); ++i) table.rows[i][1].strong = rows[i].best;
  add_references(table, task);
  return table;
}

ReportTable run_table(const Task& task) {
  ReportTable table;
  table.columns = {"run",  "series", "seed", "status",  "epochs", "accuracy %", "best %",
                   "time", "memory", "CPU",  "threads", "sgdph",  "LibTorch",   "started"};
  for (const auto& series : task.series) {
    for (const auto* run : series.runs) {
      const auto& record = run->record;
      const bool any = !record.epochs.empty();
      table.rows.push_back(
          {{run->name},
           {series.label},
           {std::to_string(run->seed)},
           {record.status},
           {std::to_string(record.epochs.size())},
           {any ? fmt::format("{:.2f}", record.top1) : "-"},
           {any ? fmt::format("{:.2f}", record.best_top1) : "-"},
           {record.over() ? fmt::format("{:.1f} s", record.train_seconds) : "-"},
           {record.over() ? fmt::format("{:.0f} MB", static_cast<double>(record.peak_memory) / 1e6) : "-"},
           {record.header_text("cpu")},
           {record.header_text("threads")},
           {record.header_text("version")},
           {record.header_text("libtorch")},
           {record.header_text("started")}});
    }
  }
  return table;
}

ReportTable differing_settings(const Task& task) {
  ReportTable table;
  table.columns = {"setting"};
  for (const auto& series : task.series) {
    if (!series.runs.empty()) table.columns.push_back(series.label);
  }
  for (const auto& [key, values] : settings_by_key(task)) {
    if (key == "opt" || all_same(values)) continue;
    std::vector<TableCell> row{{key}};
    for (const auto& value : values) row.push_back({value});
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable shared_settings(const Task& task) {
  ReportTable table{{"setting", "value"}, {}};
  for (const auto& [key, values] : settings_by_key(task)) {
    if (all_same(values) && !values.front().empty()) table.rows.push_back({{key}, {values.front()}});
  }
  return table;
}

ReportTable cost_table(const std::vector<const CostRow*>& rows) {
  auto table = plain(engine_table(rows));
  std::vector<double> time;
  std::vector<double> resident;
  std::vector<double> held;
  for (const auto* row : rows) {
    time.push_back(row->ratio.count > 0 ? row->ratio.value : 0);
    resident.push_back(row->resident.relative_mean);
    held.push_back(row->held.relative_mean);
  }
  add_bars(table, "time / SGDM", time);
  add_bars(table, "RSS / SGDM", resident);
  add_bars(table, "LibTorch's / SGDM", held);
  return table;
}

ReportTable cost_comparison(const ExperimentTable& experiment) {
  ReportTable table{{"optimizer", "ours / SGDM", "paper", "difference"}, {}};
  std::vector<double> ratios;
  for (const auto& row : experiment.rows) {
    const auto& paper = row.reference;
    ratios.push_back(row.cost.value_or(0));
    table.rows.push_back(
        {{row.label},
         {row.cost ? fmt::format("{:.2f}x", *row.cost) : "-"},
         {paper ? fmt::format("{:.2f}x", paper->value) : "-"},
         {row.cost && paper ? fmt::format("{:+.2f}", *row.cost - paper->value) : "-"}});
  }
  add_bars(table, "ours / SGDM", ratios);
  return table;
}

}  // namespace sgdph::lab
