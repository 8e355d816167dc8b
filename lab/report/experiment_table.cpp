#include "report/experiment_table.h"

#include "base/error.h"
#include "base/json.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cctype>

namespace sgdph::lab::report {
namespace {

using nlohmann::json;

// Of the files that `sgdph reproduce` writes.
constexpr const char* kBeginning = "{\n  \"axes\"";

ExperimentRow row_of(const json& cell, const std::filesystem::path& folder) {
  ExperimentRow row;
  row.label = cell.at("row").get<std::string>();
  row.optimizer = cell.at("settings").at("opt").get<std::string>();
  row.planned = cell.at("planned").get<size_t>();
  for (const auto& run : cell.at("runs")) row.runs.push_back(folder / run.get<std::string>());
  if (cell.at("ours").is_object()) row.cost = cell.at("ours").at("mean").get<double>();
  const auto& paper = cell.at("paper");
  if (!paper.is_object() || paper.at("value").is_null()) return row;
  row.reference = ReferenceFigure{"paper", paper.at("value").get<double>(), {}, row.runs};
  if (!paper.at("std").is_null()) row.reference->deviation = paper.at("std").get<double>();
  return row;
}

std::string note_of(const json& experiment) {
  const auto paper = experiment.at("paper").get<std::string>();
  auto note = fmt::format("{}{} scale.", paper.empty() ? "" : paper + ", ", experiment.at("scale").get<std::string>());
  note.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(note.front())));
  const auto reductions = experiment.at("reductions").get<std::vector<std::string>>();
  if (!reductions.empty()) note += fmt::format(" Reductions: {}.", fmt::join(reductions, "; "));
  const auto why = experiment.at("why").get<std::string>();
  if (!why.empty()) note += " " + why;
  const auto notes = experiment.at("notes").get<std::vector<std::string>>();
  return notes.empty() ? note : fmt::format("{} Notes: {}.", note, fmt::join(notes, "; "));
}

}  // namespace

std::optional<std::vector<ExperimentTable>> read_experiment_tables(
    const std::filesystem::path& file, const std::string& text) {
  const auto experiment = json::parse(text, nullptr, false);
  if (experiment.is_discarded()) {
    if (text.rfind(kBeginning, 0) == 0) fail("{}: not JSON, or cut off", file.string());
    return std::nullopt;  // somebody's own file
  }
  if (!experiment.is_object() || !experiment.contains("experiment") || !experiment.contains("groups")) {
    return std::nullopt;
  }
  check_json(text, file.string());
  std::vector<ExperimentTable> tables;
  try {
    const auto title = experiment.at("title").get<std::string>();
    for (const auto& group : experiment.at("groups")) {
      const auto label = group.at("label").get<std::string>();
      ExperimentTable table;
      table.title = label.empty() ? title : fmt::format("{} - {}", title, label);
      table.of_cost = experiment.at("quantity") != "test accuracy %";
      table.verdict = group.at("words").get<std::string>();
      if (tables.empty()) table.note = note_of(experiment);
      for (const auto& index : group.at("cells")) {
        table.rows.push_back(row_of(experiment.at("cells").at(index.get<size_t>()), file.parent_path()));
        if (!table.of_cost) table.rows.back().cost.reset();
      }
      tables.push_back(std::move(table));
    }
  } catch (const json::exception& error) {
    fail("{}: not an experiment as this version writes it: {}", file.string(), error.what());
  }
  return tables;
}

}  // namespace sgdph::lab::report
