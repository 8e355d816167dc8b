#include "inspect/report.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab {
namespace {

std::string figure(double value, const char* form = "{:.2f}") {
  return std::isfinite(value) ? fmt::format(fmt::runtime(form), value) : "-";
}

std::string share(double value) {
  return std::isfinite(value) ? fmt::format("{:.0f} %", 100 * value) : "-";
}

std::string remark(const BlockRow& row) {
  if (!row.note.empty()) return row.note;
  std::string rows;
  if (row.measured < row.channels) rows = fmt::format("{} rows", row.measured);
  if (!row.shift_invariant) return rows;
  return rows.empty() ? "shift-invariant" : "shift-invariant, " + rows;
}

/// Some column everywhere empty is left out.
bool has_remarks(const InspectReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(), [](const BlockRow& row) { return !remark(row).empty(); });
}

Table block_table(const InspectReport& report) {
  Table table;
  table.columns = {"block",  "channels",  "off / diagonal", "row sum / diagonal",
                   "cosine", "same sign", "smallest eig.",  "largest eig."};
  if (has_remarks(report)) table.columns.emplace_back("remark");
  for (const auto& row : report.rows) {
    table.rows.push_back(
        {row.block, std::to_string(row.channels), figure(row.off_diagonal), figure(row.row_sum.median_ratio),
         figure(row.row_sum.cosine), share(row.row_sum.same_sign), figure(row.smallest_eigenvalue, "{:.3g}"),
         figure(row.largest_eigenvalue, "{:.3g}")});
    if (has_remarks(report)) table.rows.back().push_back(remark(row));
  }
  return table;
}

/// The probes there are, in order.
std::vector<std::string> probes_of(const InspectReport& report) {
  for (const auto& row : report.rows) {
    std::vector<std::string> names;
    for (const auto& probe : row.probes) names.push_back(probe.probe);
    if (!names.empty()) return names;
  }
  return {};
}

const ProbeRow* find_probe(const BlockRow& row, const std::string& name) {
  for (const auto& probe : row.probes) {
    if (probe.probe == name) return &probe;
  }
  return nullptr;
}

Table error_table(const InspectReport& report, const std::vector<std::string>& probes) {
  Table table;
  table.columns = {"block"};
  for (const auto* what : {"error", "same sign"}) {
    for (const auto& probe : probes) table.columns.push_back(fmt::format("{}, {}", what, probe));
  }
  for (const auto& row : report.rows) {
    table.rows.push_back({row.block});
    auto& cells = table.rows.back();
    for (const auto& name : probes) {
      const auto* probe = find_probe(row, name);
      cells.push_back(probe == nullptr ? "-" : figure(probe->estimate.error));
    }
    for (const auto& name : probes) {
      const auto* probe = find_probe(row, name);
      cells.push_back(probe == nullptr ? "-" : share(probe->estimate.same_sign));
    }
  }
  return table;
}

/// Medians over the blocks that are not shift-invariant.
Table probe_table(const InspectReport& report, const std::vector<std::string>& probes) {
  Table table;
  table.columns = {"probe", "error", "cosine", "same sign", "divisor / |diagonal|", "cosine of the divisor"};
  for (const auto& name : probes) {
    std::vector<std::vector<double>> values(5);
    for (const auto& row : report.rows) {
      const auto* probe = find_probe(row, name);
      if (probe == nullptr || row.shift_invariant) continue;
      values[0].push_back(probe->estimate.error);
      values[1].push_back(probe->estimate.cosine);
      values[2].push_back(probe->estimate.same_sign);
      values[3].push_back(probe->divisor.median_ratio);
      values[4].push_back(probe->divisor.cosine);
    }
    table.rows.push_back(
        {name, figure(median_known(values[0])), figure(median_known(values[1])), share(median_known(values[2])),
         figure(median_known(values[3])), figure(median_known(values[4]))});
  }
  return table;
}

/// How far the figures can be trusted.
std::string rounding_text(const InspectReport& report) {
  double asymmetry = 0;
  double product = 0;
  for (const auto& row : report.rows) {
    if (std::isfinite(row.asymmetry)) asymmetry = std::max(asymmetry, row.asymmetry);
    if (std::isfinite(row.product_error)) product = std::max(product, row.product_error);
  }
  return fmt::format(
      "Rounding ({}): the blocks are symmetric to {:.1e} of their largest element, and the row sums are those the "
      "optimizer measures to {:.1e}.",
      report.precision, asymmetry, product);
}

std::string paragraphs(const InspectReport& report, bool markdown) {
  const auto render_table = markdown ? markdown_table : text_table;
  const auto heading = [&](const std::string& words) { return markdown ? "## " + words + "\n\n" : words + "\n"; };
  auto text = fmt::format(
      "{}, {} norm, on {}: {}\nbatch of {}, loss {:.4f}; {} products in {}; {}, {} threads, LibTorch {}, sgdph {}, "
      "{}\n\n",
      report.model, report.norm, report.dataset, report.source, report.batch_size, report.loss, report.products,
      duration_text(report.seconds), report.cpu, report.threads, report.libtorch, report.version, report.started);
  const auto measured = static_cast<int64_t>(report.rows.size());
  text += heading(
      measured < report.planned ? fmt::format("Hessian blocks, {} of {}", measured, report.planned)
                                : std::string("Hessian blocks"));
  text += render_table(block_table(report)) + "\n";
  text +=
      "off / diagonal: Frobenius norms. row sum / diagonal: median over channels of the absolute values. Cosine and "
      "sign: of the row sum, which is the paper's estimate, and the diagonal.\n\n";
  const auto probes = probes_of(report);
  if (!probes.empty()) {
    text += heading(fmt::format("What SGD-PH holds after {} refreshes, against the diagonal", report.refreshes));
    text += render_table(error_table(report, probes)) + "\n";
    text += heading("Median over blocks");
    text += render_table(probe_table(report, probes)) + "\n";
    text += fmt::format(
        "error: norm of the difference relative to the diagonal's. Weights and batch stand still. Rule {}; ones: the "
        "row sum; hadamard: mean over a cycle of {}; rademacher: average with {} of the old value. divisor: "
        "rectified, with floor and eps.\n\n",
        report.rule, report.probe_cycle,
        report.rule == "paper" ? 1 - report.hessian_momentum : report.hessian_momentum);
  }
  return text + rounding_text(report) + "\n\n" + to_text(report.verdict) + "\n";
}

std::string plain(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

Table flat_blocks(const InspectReport& report) {
  Table table;
  table.columns = {"block", "kind", "channels", "measured", "shift_invariant", "off_diagonal"};
  const auto probes = probes_of(report);
  const auto name_columns = [&](const std::string& prefix) {
    for (const auto* name : {"cosine", "same_sign", "median_ratio", "error"}) {
      table.columns.push_back(fmt::format("{}_{}", prefix, name));
    }
  };
  name_columns("row_sum");
  for (const auto* name : {"smallest_eigenvalue", "largest_eigenvalue", "asymmetry", "product_error"}) {
    table.columns.emplace_back(name);
  }
  for (const auto& probe : probes) {
    name_columns(probe);
    name_columns(probe + "_divisor");
  }
  table.columns.emplace_back("note");
  for (const auto& row : report.rows) {
    std::vector<std::string> cells{
        row.block,
        row.kind,
        std::to_string(row.channels),
        std::to_string(row.measured),
        row.shift_invariant ? "true" : "false",
        plain(row.off_diagonal)};
    const auto add = [&](const Agreement& a) {
      for (const auto value : {a.cosine, a.same_sign, a.median_ratio, a.error}) cells.push_back(plain(value));
    };
    add(row.row_sum);
    for (const auto value : {row.smallest_eigenvalue, row.largest_eigenvalue, row.asymmetry, row.product_error}) {
      cells.push_back(plain(value));
    }
    for (const auto& name : probes) {
      const auto* probe = find_probe(row, name);
      add(probe == nullptr ? Agreement() : probe->estimate);
      add(probe == nullptr ? Agreement() : probe->divisor);
    }
    cells.push_back(row.note);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string render(const InspectReport& report, TableFormat format) {
  switch (format) {
    case TableFormat::Text: return paragraphs(report, false);
    case TableFormat::Markdown: return paragraphs(report, true);
    case TableFormat::Csv: return csv_table(flat_blocks(report));
    case TableFormat::Json: {
      auto json = nlohmann::json(report);
      json["verdict"]["text"] = to_text(report.verdict);
      return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
  }
  return "";
}

}  // namespace sgdph::lab
