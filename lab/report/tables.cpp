#include "report/tables.h"

#include "settings/settings.h"
#include "tables/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace sgdph::lab::report {
namespace {

using nlohmann::json;

std::string cell_text(const json& value) {
  return value.is_null() ? "-" : settings::plain_text(value);
}

void add_references(tables::Table& table, const Comparison& comparison) {
  std::set<std::string> sources;
  for (const auto& series : comparison.series) {
    if (series.reference) sources.insert(series.reference->source);
  }
  if (sources.empty()) return;
  const auto name = sources.size() == 1 ? *sources.begin() : std::string("reference");
  table.columns.insert(table.columns.begin() + 2, {name + " %", "difference"});
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto& series = comparison.series[i];
    std::string value = "-";
    std::optional<double> difference;
    if (const auto& figure = series.reference) {
      value = tables::spread_text(figure->value, figure->deviation);
      if (sources.size() > 1) value += fmt::format(" ({})", figure->source);
      if (series.summary.top1.count > 0) difference = series.summary.top1.mean - figure->value;
    }
    table.rows[i].insert(table.rows[i].begin() + 2, {value, tables::difference_text(difference)});
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
  settings::Settings known;
  for (const auto& field : settings::fields_of(known)) {
    if (!field.result) keys.insert(field.key);
  }
  return keys;
}

/// The settings that matter: one text for each series.
std::map<std::string, std::vector<std::string>> settings_by_key(const Comparison& comparison) {
  std::set<std::string> keys;
  for (const auto& series : comparison.series) {
    for (const auto* run : series.runs) {
      for (const auto& [key, value] : run->settings.items()) keys.insert(key);
    }
  }
  for (const auto& key : settings_left_out()) keys.erase(key);
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& key : keys) {
    for (const auto& series : comparison.series) {
      if (!series.runs.empty()) all[key].push_back(values_in(series, key));
    }
  }
  return all;
}

bool all_same(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& value) { return value == values.front(); });
}

}  // namespace

tables::Table result_table(const Comparison& comparison) {
  std::vector<study::SummaryRow> rows;
  std::vector<double> seconds;
  std::vector<double> memory;
  for (const auto& series : comparison.series) {
    rows.push_back(series.summary);
    seconds.push_back(series.summary.relative_seconds.value_or(0));
    memory.push_back(series.summary.relative_memory.value_or(0));
  }
  auto table = study::summary_table(rows);
  table.add_bars("time / SGDM", seconds);
  table.add_bars("memory / SGDM", memory);
  add_references(table, comparison);
  return table;
}

tables::Table run_table(const Comparison& comparison) {
  tables::Table table;
  table.columns = {
      "run", "series", "seed", "status", "epochs", "test %", comparison.validated ? "at best %" : "best %"};
  if (comparison.validated) table.columns.push_back("validation %");
  for (const auto* column : {"time", "memory", "CPU", "threads", "sgdph", "LibTorch", "started"}) {
    table.columns.emplace_back(column);
  }
  for (const auto& series : comparison.series) {
    for (const auto* run : series.runs) {
      const auto& record = run->record;
      const auto accuracy = [](bool any, double value) { return any ? tables::decimals_text(value) : "-"; };
      auto& row = table.rows.emplace_back();
      row = {
          run->name,
          series.label,
          std::to_string(run->seed),
          record.status,
          std::to_string(record.epochs.size()),
          accuracy(record.tested, record.top1),
          accuracy(record.tested, record.best_top1)};
      if (comparison.validated) row.emplace_back(accuracy(record.validated, record.val_top1));
      row.insert(
          row.end(), {record.over() ? fmt::format("{:.1f} s", record.train_seconds) : "-",
                      record.over() ? fmt::format("{:.0f} MB", static_cast<double>(record.peak_memory) / 1e6) : "-",
                      record.header_text("cpu"), record.header_text("threads"), record.header_text("version"),
                      record.header_text("libtorch"), record.header_text("started")});
    }
  }
  return table;
}

tables::Table differing_settings(const Comparison& comparison) {
  tables::Table table;
  table.columns = {"setting"};
  for (const auto& series : comparison.series) {
    if (!series.runs.empty()) table.columns.push_back(series.label);
  }
  settings::Settings known;
  const auto fields = settings::fields_of(known);
  for (const auto& [key, values] : settings_by_key(comparison)) {
    const auto* field = settings::find_field(fields, key);
    if ((field != nullptr && field->series_name) || all_same(values)) continue;
    auto& row = table.rows.emplace_back(values.begin(), values.end());
    row.insert(row.begin(), key);
  }
  return table;
}

tables::Table shared_settings(const Comparison& comparison) {
  tables::Table table{{"setting", "value"}, {}};
  for (const auto& [key, values] : settings_by_key(comparison)) {
    if (all_same(values) && !values.front().empty()) table.rows.push_back({key, values.front()});
  }
  return table;
}

tables::Table cost_comparison(const ExperimentTable& experiment) {
  tables::Table table{{"optimizer", "ours / SGDM", "paper", "difference"}, {}};
  std::vector<double> ratios;
  for (const auto& row : experiment.rows) {
    const auto& paper = row.reference;
    ratios.push_back(row.cost.value_or(0));
    const auto difference = row.cost && paper ? std::optional(*row.cost - paper->value) : std::nullopt;
    table.rows.push_back(
        {row.label, tables::ratio_text(row.cost.value_or(0)), tables::ratio_text(paper ? paper->value : 0),
         tables::difference_text(difference)});
  }
  table.add_bars("ours / SGDM", ratios);
  return table;
}

}  // namespace sgdph::lab::report
