#include "cost/report.h"

#include "cost/engine.h"
#include "tables/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab::cost {
namespace {

std::string interval_text(const tables::Estimate& estimate) {
  return estimate.has_interval() ? fmt::format("{:.2f} - {:.2f}", estimate.low, estimate.high) : "-";
}

/// "1.21x (1.32x)": mean and worst.
std::string memory_text(const records::MemoryFigures& figures) {
  if (figures.relative_mean == 0) return "-";
  if (figures.mean == figures.worst) return tables::ratio_text(figures.relative_mean);
  return fmt::format("{} ({})", tables::ratio_text(figures.relative_mean), tables::ratio_text(figures.relative_worst));
}

std::string seconds_text(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.3f} s", seconds);
}

tables::Table position_table(const records::CostRow& row) {
  tables::Table table;
  table.columns = {"block", "depth", "time / SGDM", "RSS / SGDM", "LibTorch's / SGDM", "steps timed"};
  for (const auto& position : row.positions) {
    table.rows.push_back(
        {position.block, std::to_string(position.depth), tables::ratio_text(position.ratio),
         tables::ratio_text(position.resident), tables::ratio_text(position.held), std::to_string(position.steps)});
  }
  return table;
}

tables::Document readable(const records::CostReport& report, bool positions) {
  tables::Document document;
  document.paragraph(fmt::format(
      "{}, {} threads, LibTorch {}, sgdph {}, {}", report.cpu, report.threads, report.libtorch, report.version,
      report.started));
  for (const auto& rows : by_workload(report)) {
    const auto& model = rows.front()->model;
    const auto batch_size = rows.front()->batch_size;
    document.table(fmt::format("{} ({} form), batch {}", model, report.form, batch_size), engine_table(rows), "cost");
    for (const auto& row : report.fast_to_stock) {
      if (row.model != model || row.batch_size != batch_size) continue;
      document.paragraph(fmt::format(
          "SGDM on the fast layers takes {:.2f}{} of its time on LibTorch's own.", row.ratio.value,
          row.ratio.has_interval() ? fmt::format(" ({})", interval_text(row.ratio)) : ""));
    }
    for (const auto* row : rows) {
      if (!positions) break;
      document.table(
          fmt::format("{}, {}, batch {}, by block", engine(row->engine).label, model, batch_size), position_table(*row),
          "cost");
    }
  }
  document.paragraph(
      "Time and memory of a step relative to SGDM with the same layers; for SGD-PH the mean over a cycle of blocks, "
      "memory also of the worst block (in brackets). RSS: above idle. LibTorch's: bytes held by its allocator.",
      "small");
  if (!report.resident_known) {
    document.paragraph("The peak of the resident set cannot be reset here, so RSS is not given.", "small");
  }
  return document;
}

/// For programs; 0 is not known.
std::string known_number(double value) {
  return value == 0 ? "" : tables::number_text(value);
}

tables::Table flat_table(const records::CostReport& report) {
  tables::Table table;
  table.columns = {"model", "batch_size", "engine", "layers", "ratio", "ratio_low", "ratio_high", "steps", "seconds"};
  for (const auto* memory : {"resident", "held"}) {
    for (const auto* figure : {"mean_bytes", "worst_bytes", "mean_relative", "worst_relative"}) {
      table.columns.push_back(fmt::format("{}_{}", memory, figure));
    }
  }
  table.columns.emplace_back("note");
  for (const auto& row : report.rows) {
    std::vector<tables::TableCell> cells{row.model, std::to_string(row.batch_size), row.engine, row.kernels};
    for (const auto value : {row.ratio.value, row.ratio.low, row.ratio.high}) cells.push_back(known_number(value));
    cells.push_back(std::to_string(row.ratio.count));
    cells.push_back(known_number(row.seconds.value));
    for (const auto* m : {&row.resident, &row.held}) {
      for (const auto value : {m->mean, m->worst, m->relative_mean, m->relative_worst})
        cells.push_back(known_number(value));
    }
    cells.push_back(row.note);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

tables::Table flat_positions(const records::CostReport& report) {
  tables::Table table;
  table.columns = {"model", "batch_size",        "engine",       "block", "depth", "ratio",
                   "steps", "resident_relative", "held_relative"};
  for (const auto& row : report.rows) {
    for (const auto& p : row.positions) {
      table.rows.push_back(
          {row.model, std::to_string(row.batch_size), row.engine, p.block, std::to_string(p.depth),
           known_number(p.ratio), std::to_string(p.steps), known_number(p.resident), known_number(p.held)});
    }
  }
  return table;
}

}  // namespace

tables::Table engine_table(const std::vector<const records::CostRow*>& rows) {
  tables::Table table;
  table.columns = {"engine", "layers",     "time / SGDM",       "95 % interval",
                   "step",   "RSS / SGDM", "LibTorch's / SGDM", "steps timed"};
  std::vector<double> time;
  std::vector<double> resident;
  std::vector<double> held;
  for (const auto* row : rows) {
    const bool any = row->ratio.count > 0;
    table.rows.push_back(
        {engine(row->engine).label, row->kernels, tables::ratio_text(any ? row->ratio.value : 0),
         interval_text(row->ratio), any ? seconds_text(row->seconds.value) : "-", memory_text(row->resident),
         memory_text(row->held), row->note.empty() ? std::to_string(row->ratio.count) : row->note});
    // SGDM relative to itself is no measurement.
    if (engine(row->engine).is_baseline()) table.rows.back()[3] = "";
    time.push_back(any ? row->ratio.value : 0);
    resident.push_back(row->resident.relative_mean);
    held.push_back(row->held.relative_mean);
  }
  table.add_bars("time / SGDM", time);
  table.add_bars("RSS / SGDM", resident);
  table.add_bars("LibTorch's / SGDM", held);
  return table;
}

std::vector<std::vector<const records::CostRow*>> by_workload(const records::CostReport& report) {
  std::vector<std::vector<const records::CostRow*>> workloads;
  for (const auto& row : report.rows) {
    const auto same = [&](const auto& rows) {
      return rows.front()->model == row.model && rows.front()->batch_size == row.batch_size;
    };
    auto workload = std::find_if(workloads.begin(), workloads.end(), same);
    if (workload == workloads.end()) workload = workloads.insert(workload, std::vector<const records::CostRow*>());
    workload->push_back(&row);
  }
  return workloads;
}

tables::Presentation present(const records::CostReport& report, bool positions) {
  return {readable(report, positions), positions ? flat_positions(report) : flat_table(report), report};
}

}  // namespace sgdph::lab::cost
