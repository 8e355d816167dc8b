#include "inspect/report.h"

#include "base/text.h"
#include "tables/statistics.h"
#include "tables/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab::inspect {
namespace {

// A block whose couplings have less than this part of its diagonal's norm passes for diagonal.
constexpr double kDiagonal = 0.1;
// For which the noise of refresh spread is told.
constexpr int kRanks = 8;

records::Range range_of(const std::vector<double>& values) {
  records::Range range;
  range.median = tables::median_known(values);
  for (const auto value : values) {
    if (!std::isfinite(value)) continue;
    range.least = std::isfinite(range.least) ? std::min(range.least, value) : value;
    range.most = std::isfinite(range.most) ? std::max(range.most, value) : value;
  }
  return range;
}

std::string times(const records::Range& range) {
  return fmt::format("{:.2f} to {:.2f} times (median {:.2f})", range.least, range.most, range.median);
}

std::string percents(const records::Range& range) {
  return fmt::format("{:.0f} to {:.0f} % (median {:.0f} %)", 100 * range.least, 100 * range.most, 100 * range.median);
}

std::string to_text(const records::Verdict& verdict) {
  const bool in_part = verdict.in_part > 0;
  std::string text;
  if (verdict.blocks == 0) {
    text = "No block here can tell whether the paper's claim holds that these Hessian blocks are diagonal.";
  } else if (verdict.not_diagonal == 0) {
    text = fmt::format(
        "The paper's claim that these Hessian blocks are diagonal holds here to {:.2g}: that is the largest "
        "off-diagonal norm relative to the diagonal's, of {}{} blocks.",
        verdict.off_diagonal.most, in_part ? "the rows measured of " : "", verdict.blocks);
  } else {
    text = fmt::format(
        "The paper's claim that these Hessian blocks are diagonal does not hold: {} of {} are not. The off-diagonal "
        "part of a block has {} the Frobenius norm of its diagonal{}. The product with ones, which the paper takes for "
        "the diagonal, is the row sum: it has the diagonal's sign on {} of a block's {}channels, is in the median "
        "channel {} as large, and is off by {} the diagonal's norm.",
        verdict.not_diagonal, verdict.blocks, times(verdict.off_diagonal), in_part ? ", of the rows measured" : "",
        percents(verdict.same_sign), in_part ? "measured " : "", times(verdict.row_sum_ratio),
        times(verdict.row_sum_error));
  }
  if (!verdict.shift_invariant.empty()) {
    text += fmt::format(
        " Shift-invariant, so that the row sum is nothing but rounding and SGD-PH's guard makes them first-order: {}.",
        fmt::join(verdict.shift_invariant, ", "));
  }
  return text;
}

/// Four digits; "-" for what is not known.
std::string figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}

std::string remark(const records::BlockRow& row) {
  if (!row.note.empty()) return row.note;
  std::string rows;
  if (row.measured < row.channels) rows = fmt::format("{} rows", row.measured);
  if (!row.shift_invariant) return rows;
  return rows.empty() ? "shift-invariant" : "shift-invariant, " + rows;
}

/// Some column everywhere empty is left out.
bool has_remarks(const records::InspectReport& report) {
  return std::any_of(
      report.rows.begin(), report.rows.end(), [](const records::BlockRow& row) { return !remark(row).empty(); });
}

bool has_shards(const records::InspectReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(), [](const records::BlockRow& row) {
    return std::isfinite(row.over_shards);
  });
}

/// Of a smoothed estimate with Refresh::Spread over so many ranks, relative to that of Cyclic: there it is one rank's
/// batch with so many times the random signs.
double noise_of_spread(const records::BlockRow& row, double ranks) {
  const double signs = row.off_diagonal * row.off_diagonal, shards = row.over_shards * row.over_shards;
  return std::sqrt((signs + shards) / (ranks * signs + shards));
}

std::string shards_text(const records::InspectReport& report) {
  std::vector<double> noise;
  for (const auto& row : report.rows) noise.push_back(noise_of_spread(row, kRanks));
  return fmt::format(
      "over shards: standard deviation of a random-sign estimate over {} shards of {} images, relative to the "
      "diagonal's norm; off diagonal is what the signs themselves add. With {} ranks of so many images each, refresh "
      "spread has {} of the noise of cyclic (median over blocks).",
      report.shards, report.shards == 0 ? 0 : report.batch_size / report.shards, kRanks,
      tables::decimals_text(tables::median_known(noise)));
}

tables::Table block_table(const records::InspectReport& report) {
  tables::Table table;
  table.columns = {"block",           "channels",           "off diagonal",  "row sum: ratio",
                   "row sum: cosine", "row sum: same sign", "smallest eig.", "largest eig."};
  if (has_shards(report)) table.columns.emplace_back("over shards");
  if (has_remarks(report)) table.columns.emplace_back("remark");
  for (const auto& row : report.rows) {
    table.rows.push_back(
        {row.block, std::to_string(row.channels), figure(row.off_diagonal), figure(row.row_sum.median_ratio),
         figure(row.row_sum.cosine), tables::percent_text(row.row_sum.same_sign), figure(row.smallest_eigenvalue),
         figure(row.largest_eigenvalue)});
    if (has_shards(report)) table.rows.back().emplace_back(figure(row.over_shards));
    if (has_remarks(report)) table.rows.back().emplace_back(remark(row));
  }
  return table;
}

/// The probes there are, in order.
std::vector<std::string> probes_of(const records::InspectReport& report) {
  for (const auto& row : report.rows) {
    std::vector<std::string> names;
    for (const auto& probe : row.probes) names.push_back(probe.probe);
    if (!names.empty()) return names;
  }
  return {};
}

/// The block's figures of a probe; unknown if it was not tried on it.
records::ProbeRow probe_of(const records::BlockRow& row, const std::string& name) {
  for (const auto& probe : row.probes) {
    if (probe.probe == name) return probe;
  }
  return {};
}

tables::Table error_table(const records::InspectReport& report, const std::vector<std::string>& probes) {
  tables::Table table;
  table.columns = {"block"};
  for (const auto* what : {"error", "cosine", "same sign"}) {
    for (const auto& probe : probes) table.columns.push_back(fmt::format("{}, {}", what, probe));
  }
  for (const auto& row : report.rows) {
    auto& cells = table.rows.emplace_back();
    cells.emplace_back(row.block);
    for (const auto& name : probes) cells.emplace_back(figure(probe_of(row, name).estimate.error));
    for (const auto& name : probes) cells.emplace_back(figure(probe_of(row, name).estimate.cosine));
    for (const auto& name : probes) cells.emplace_back(tables::percent_text(probe_of(row, name).estimate.same_sign));
  }
  return table;
}

/// Medians over the blocks that are not shift-invariant.
tables::Table probe_table(const records::InspectReport& report, const std::vector<std::string>& probes) {
  tables::Table table;
  table.columns = {"probe", "error", "cosine", "same sign", "divisor / |diagonal|", "cosine of the divisor"};
  for (const auto& name : probes) {
    const auto median = [&](records::Agreement records::ProbeRow::*of, double records::Agreement::*what) {
      std::vector<double> values;
      for (const auto& row : report.rows) {
        if (!row.shift_invariant) values.push_back(probe_of(row, name).*of.*what);
      }
      return tables::median_known(values);
    };
    table.rows.push_back(
        {name, figure(median(&records::ProbeRow::estimate, &records::Agreement::error)),
         figure(median(&records::ProbeRow::estimate, &records::Agreement::cosine)),
         tables::percent_text(median(&records::ProbeRow::estimate, &records::Agreement::same_sign)),
         figure(median(&records::ProbeRow::divisor, &records::Agreement::median_ratio)),
         figure(median(&records::ProbeRow::divisor, &records::Agreement::cosine))});
  }
  return table;
}

/// How far the figures can be trusted.
std::string rounding_text(const records::InspectReport& report) {
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

tables::Document readable(const records::InspectReport& report) {
  tables::Document document;
  document.paragraph(fmt::format(
      "{}, {} norm, on {}: {};\nbatch of {}, loss {:.4f}; {} products in {}; {}, {} threads, LibTorch {}, sgdph {}, {}",
      report.model, report.norm, report.dataset, report.source, report.batch_size, report.loss, report.products,
      duration_text(report.seconds), report.cpu, report.threads, report.libtorch, report.version, report.started));
  const auto measured = static_cast<int64_t>(report.rows.size());
  document.table(
      measured < report.planned ? fmt::format("Hessian blocks, {} of {}", measured, report.planned) : "Hessian blocks",
      block_table(report), "blocks");
  document.paragraph(
      "off diagonal: Frobenius norm relative to the diagonal's. row sum: the paper's estimate, against the diagonal; "
      "ratio: median over channels of the absolute values.",
      "small");
  if (has_shards(report)) document.paragraph(shards_text(report), "small");
  const auto probes = probes_of(report);
  if (!probes.empty()) {
    document.table(
        fmt::format("What each probe holds after {} refreshes, against the diagonal", report.refreshes),
        error_table(report, probes), "blocks");
    document.table("Median over blocks", probe_table(report, probes), "blocks");
    document.paragraph(
        fmt::format(
            "error: norm of the difference relative to the diagonal's. Weights and batch stand still. Rule {}; ones: "
            "the row sum; hadamard: mean over a cycle of {}; rademacher: average with {} of the old value. divisor: "
            "rectified, with floor and eps.",
            report.rule, report.probe_cycle,
            report.rule == "paper" ? 1 - report.hessian_momentum : report.hessian_momentum),
        "small");
  }
  return document.paragraph(rounding_text(report), "small").paragraph(report.verdict.text);
}

tables::Table flat_blocks(const records::InspectReport& report) {
  tables::Table table;
  table.columns = {"block", "kind", "channels", "measured", "shift_invariant", "off_diagonal", "over_shards"};
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
    std::vector<tables::TableCell> cells{
        row.block,
        row.kind,
        std::to_string(row.channels),
        std::to_string(row.measured),
        row.shift_invariant ? "true" : "false",
        tables::number_text(row.off_diagonal),
        tables::number_text(row.over_shards)};
    const auto add = [&](const records::Agreement& a) {
      for (const auto value : {a.cosine, a.same_sign, a.median_ratio, a.error})
        cells.push_back(tables::number_text(value));
    };
    add(row.row_sum);
    for (const auto value : {row.smallest_eigenvalue, row.largest_eigenvalue, row.asymmetry, row.product_error}) {
      cells.push_back(tables::number_text(value));
    }
    for (const auto& name : probes) {
      add(probe_of(row, name).estimate);
      add(probe_of(row, name).divisor);
    }
    cells.push_back(row.note);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

records::Verdict verdict_of(const std::vector<records::BlockRow>& rows) {
  records::Verdict verdict;
  std::vector<double> off_diagonal;
  std::vector<double> same_sign;
  std::vector<double> ratio;
  std::vector<double> error;
  for (const auto& row : rows) {
    if (row.shift_invariant) verdict.shift_invariant.push_back(row.block);
    if (row.shift_invariant || row.channels < 2 || !std::isfinite(row.off_diagonal)) continue;
    ++verdict.blocks;
    if (row.off_diagonal > kDiagonal) ++verdict.not_diagonal;
    if (row.measured < row.channels) ++verdict.in_part;
    off_diagonal.push_back(row.off_diagonal);
    same_sign.push_back(row.row_sum.same_sign);
    ratio.push_back(row.row_sum.median_ratio);
    error.push_back(row.row_sum.error);
  }
  verdict.off_diagonal = range_of(off_diagonal);
  verdict.same_sign = range_of(same_sign);
  verdict.row_sum_ratio = range_of(ratio);
  verdict.row_sum_error = range_of(error);
  verdict.text = to_text(verdict);
  return verdict;
}

tables::Presentation present(const records::InspectReport& report) {
  return {readable(report), flat_blocks(report), report};
}

}  // namespace sgdph::lab::inspect
