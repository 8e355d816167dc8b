// How a result is shown.

#include "base/machine.h"
#include "reproduce/result.h"
#include "tables/table.h"

#include "base/error.h"

#include <fmt/ranges.h>

namespace sgdph::lab::reproduce {
namespace {

bool is_cost(const ExperimentResult& result) {
  return result.experiment.kind == ExperimentKind::Cost;
}

std::string ours_text(const ExperimentResult& result, const CellResult& cell) {
  if (cell.ours.count == 0) return cell.diverged > 0 ? "diverged" : "-";
  return is_cost(result) ? tables::ratio_text(cell.ours.mean) : tables::spread_text(cell.ours);
}

std::string paper_text(const ExperimentResult& result, const CellResult& cell) {
  if (!cell.paper || !cell.paper->value) return "none";
  return is_cost(result) ? tables::ratio_text(*cell.paper->value)
                         : tables::spread_text(*cell.paper->value, cell.paper->deviation);
}

std::string rank_text(size_t rank) {
  return rank == 0 ? "-" : std::to_string(rank);
}

tables::Table group_table(const ExperimentResult& result, const GroupResult& group) {
  const auto unit = is_cost(result) ? std::string("cost / SGDM") : std::string("test accuracy %");
  const bool published = !result.experiment.figures.empty();
  tables::Table table;
  table.columns = {result.experiment.ranked, "ours: " + unit, "rank", "runs"};
  if (published) {
    table.columns = {result.experiment.ranked, "ours: " + unit, "paper", "difference", "rank", "paper's rank", "runs"};
  }
  for (const auto i : group.cells) {
    const auto& cell = result.cells[i];
    const auto label = ranked_label(result.experiment, cell.cell);
    const auto ours = ours_text(result, cell);
    const auto runs = tables::runs_text(cell.ours.count + cell.diverged, cell.planned, cell.diverged);
    if (published) {
      table.rows.push_back(
          {label, ours, paper_text(result, cell), tables::difference_text(cell.difference()), rank_text(cell.rank),
           rank_text(cell.paper_rank), runs});
    } else {
      table.rows.push_back({label, ours, rank_text(cell.rank), runs});
    }
    table.rows.back()[1].strong = cell.rank == 1;
  }
  return table;
}

/// How many take part in a ranking, unless all do.
std::string ranked_part(const GroupResult& group) {
  if (group.ranked == group.cells.size()) return "";
  auto text = fmt::format("; {} of {} ranked", group.ranked, group.cells.size());
  return group.diverged == 0 ? text : fmt::format("{}, {} diverged", text, group.diverged);
}

std::string verdict(const ExperimentResult& result, const GroupResult& group) {
  if (result.experiment.figures.empty()) {
    return group.best.empty() ? "no run is finished" : fmt::format("best is {}{}", group.best, ranked_part(group));
  }
  auto text = group.agreement.words();
  if (group.agreement.pairs > 0) text += fmt::format(" (Kendall's tau {:.2f})", group.agreement.tau);
  if (!group.best.empty() && !group.paper_best.empty()) {
    text += group.best == group.paper_best ? fmt::format("; {} is best in both", group.best)
                                           : fmt::format("; best is {}, in the paper {}", group.best, group.paper_best);
  }
  return text + ranked_part(group);
}

/// Of the records, and of the paper's figures.
std::vector<std::string> notes_of(const ExperimentResult& result) {
  auto notes = result.notes;
  for (const auto& cell : result.cells) {
    if (cell.paper && !cell.paper->note.empty()) {
      notes.push_back(fmt::format("the paper's figure, {}: {}", cell.cell.label, cell.paper->note));
    }
  }
  return notes;
}

tables::Document readable(const ExperimentResult& result) {
  const auto& experiment = result.experiment;
  tables::Document document;
  document.title(experiment.title);
  document.paragraph(
      fmt::format("{}{}{} scale", experiment.paper, experiment.paper.empty() ? "" : ", ", to_string(result.scale)));
  if (!result.reductions.empty()) {
    document.paragraph(fmt::format("Reductions: {}.", fmt::join(result.reductions, "; ")));
    document.paragraph(experiment.desk.why);
  }
  for (const auto& group : result.groups) {
    document.table(group.label, group_table(result, group)).paragraph(verdict(result, group));
  }
  return document.list(notes_of(result));
}

tables::Table flat_table(const ExperimentResult& result) {
  tables::Table table;
  table.columns = result.experiment.axis_names();
  for (const auto* column :
       {"ours", "ours_std", "runs", "diverged", "planned", "paper", "paper_std", "difference", "rank", "paper_rank",
        "table", "section", "note"}) {
    table.columns.emplace_back(column);
  }
  for (const auto& cell : result.cells) {
    const auto& values = cell.cell.values;
    auto& row = table.rows.emplace_back(values.begin(), values.end());
    const bool any = cell.ours.count > 0;
    const auto paper = cell.paper.value_or(PaperFigure{});
    for (const auto& field :
         {any ? tables::number_text(cell.ours.mean) : "", any ? tables::number_text(cell.ours.deviation) : "",
          std::to_string(cell.ours.count), std::to_string(cell.diverged), std::to_string(cell.planned),
          tables::number_text(paper.value), tables::number_text(paper.deviation),
          tables::number_text(cell.difference()), cell.rank == 0 ? "" : std::to_string(cell.rank),
          cell.paper_rank == 0 ? "" : std::to_string(cell.paper_rank), paper.table, paper.section, paper.note}) {
      row.emplace_back(field);
    }
  }
  return table;
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

/// What the cell is; where and how it is run is left to the records.
nlohmann::json settings_json(settings::Settings settings) {
  auto json = settings::to_json(settings);
  for (const auto& field : settings::fields_of(settings)) {
    if (!field.result) json.erase(field.key);
  }
  return json;
}

nlohmann::json cell_json(const ExperimentResult& result, const CellResult& cell) {
  auto values = nlohmann::json::object();
  for (size_t i = 0; i < cell.cell.values.size(); ++i) values[result.experiment.axes[i].name] = cell.cell.values[i];
  nlohmann::json paper;
  if (cell.paper) {
    paper = {
        {"value", or_null(cell.paper->value)},
        {"std", or_null(cell.paper->deviation)},
        {"table", cell.paper->table},
        {"section", cell.paper->section},
        {"note", cell.paper->note}};
  }
  auto runs = nlohmann::json::array();  // as seen from the file that this goes to
  for (const auto& run : cell.runs) runs.push_back((result.records / run.folder.filename()).generic_string());
  nlohmann::json ours;
  if (cell.ours.count > 0) ours = cell.ours;
  return {
      {"values", values},
      {"label", cell.cell.label},
      {"row", ranked_label(result.experiment, cell.cell)},
      {"ours", ours},
      {"planned", cell.planned},
      {"diverged", cell.diverged},
      {"paper", paper},
      {"difference", or_null(cell.difference())},
      {"rank", cell.rank},
      {"paper_rank", cell.paper_rank},
      {"curve", cell.curve},
      {"runs", runs},
      {"settings", settings_json(cell.cell.settings)}};
}

nlohmann::json whole_json(const ExperimentResult& result) {
  const auto& experiment = result.experiment;
  nlohmann::json json{
      {"experiment", experiment.name},
      {"title", experiment.title},
      {"paper", experiment.paper},
      {"scale", to_string(result.scale)},
      {"axes", experiment.axis_names()},
      {"ranked", experiment.ranked},
      {"quantity", is_cost(result) ? "cost relative to SGDM" : "test accuracy %"},
      {"version", sgdph_version()},
      {"reductions", result.reductions},
      {"why", result.scale == Scale::Desk ? experiment.desk.why : ""},
      {"notes", notes_of(result)}};
  json["cells"] = nlohmann::json::array();
  for (const auto& cell : result.cells) json["cells"].push_back(cell_json(result, cell));
  json["groups"] = nlohmann::json::array();
  for (const auto& group : result.groups) {
    json["groups"].push_back(
        {{"label", group.label},
         {"cells", group.cells},
         {"pairs", group.agreement.pairs},
         {"swapped", group.agreement.swapped},
         {"tau", group.agreement.tau},
         {"best", group.best},
         {"paper_best", group.paper_best},
         {"words", verdict(result, group)}});
  }
  return json;
}

}  // namespace

tables::Presentation present(const ExperimentResult& result) {
  return {readable(result), flat_table(result), whole_json(result)};
}

std::string curves_csv(const ExperimentResult& result) {
  tables::Table table;
  table.columns = result.experiment.axis_names();
  bool validated = false;
  for (const auto& cell : result.cells) {
    for (const auto& run : cell.runs) validated = validated || run.validated;
  }
  const auto* measured = validated ? "val_top1" : "test_top1";
  for (const auto* column : {"seed", "epoch", "train_top1", measured}) table.columns.emplace_back(column);
  for (const auto& cell : result.cells) {
    for (const auto& run : cell.runs) {
      for (const auto& epoch : run.epochs) {
        const auto& values = cell.cell.values;
        auto& row = table.rows.emplace_back(values.begin(), values.end());
        row.emplace_back(run.header.value("seed", nlohmann::json()).dump());
        for (const auto* key : {"epoch", "train_top1", measured})
          row.emplace_back(epoch.value(key, nlohmann::json()).dump());
      }
    }
  }
  return tables::csv_table(table);
}

}  // namespace sgdph::lab::reproduce
