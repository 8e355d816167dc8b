#include "reproduce/cost_experiment.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine.h"
#include "optimizers/options.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace sgdph::lab::reproduce {
namespace {

const records::CostRow* row_of_engine(
    const records::CostReport& report, const cost::CostOptions& options, const std::string& engine) {
  for (const auto& row : report.rows) {
    if (row.engine == engine && row.model == options.models.front() && row.batch_size == options.batch_sizes.front()) {
      return &row;
    }
  }
  return nullptr;
}

std::string quantity_of(const Experiment& experiment, const Cell& cell) {
  for (size_t i = 0; i < cell.values.size(); ++i) {
    if (experiment.axes[i].name == kQuantityAxis) return cell.values[i];
  }
  return "time";
}

}  // namespace

cost::CostOptions cost_options_of(const Experiment& experiment, const Selection& selection) {
  const auto cells = cells_of(experiment, selection);
  std::vector<std::string> names;
  for (const auto& cell : cells) {
    if (std::find(names.begin(), names.end(), cell.settings.opt) == names.end()) names.push_back(cell.settings.opt);
  }
  const auto& settings = cells.front().settings;
  if (settings.device != "cpu") fail("--device: {} measures on the CPU, got '{}'", experiment.name, settings.device);
  if (settings.width != 1 || settings.norm != "batch" || settings.kernels != "fast") {
    fail("{}: cost is measured at width 1, with batch norm and fast kernels; 'sgdph cost' has more", experiment.name);
  }
  cost::CostOptions options;
  options.models = {settings.model};
  options.form = settings.form;
  options.batch_sizes = {settings.batch_size};
  options.engines = cost::engines_from_text(fmt::format("{}", fmt::join(names, ",")));
  options.limit.seconds = (selection.scale == Scale::Full ? experiment.full : experiment.desk).seconds;
  options.threads = settings.threads;
  options.seed = settings.seed;
  cost::check_cost_options(options);
  return options;
}

std::filesystem::path cost_folder(const cost::CostOptions& options, const std::filesystem::path& output_dir) {
  std::string engines;
  if (options.engines.size() < optimizers::optimizer_names().size()) {
    for (const auto& engine : options.engines) engines += "-" + engine.name;
  }
  const auto threads = options.threads > 0 ? fmt::format("-{}threads", options.threads) : "";
  return output_dir / fmt::format(
                          "cost-{}-{}-batch{}{}{}", options.models.front(), options.form, options.batch_sizes.front(),
                          threads, engines);
}

std::optional<records::CostReport> finished_cost_report(
    const cost::CostOptions& options, const std::filesystem::path& output_dir) {
  const auto path = cost_folder(options, output_dir) / "cost.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  records::CostReport report;
  const auto text = read_file(path);
  check_json(text, path.string());
  try {
    report = nlohmann::json::parse(text).get<records::CostReport>();
  } catch (const nlohmann::json::exception&) {
    fail("{} is damaged or of another version; move it away and it is measured again", path.string());
  }
  for (const auto& engine : options.engines) {
    const auto* row = row_of_engine(report, options, engine.name);
    if (row == nullptr || row->ratio.count == 0 || row->held.mean == 0) return std::nullopt;
  }
  return report;
}

ExperimentResult collect_cost_result(
    const Experiment& experiment, const Selection& selection, const std::optional<records::CostReport>& report) {
  auto result = result_without_cells(experiment, selection);
  const auto options = cost_options_of(experiment, selection);
  for (const auto& cell : cells_of(experiment, selection)) {
    CellResult found;
    found.cell = cell;
    found.planned = 1;
    const auto* row = report ? row_of_engine(*report, options, cell.settings.opt) : nullptr;
    if (row != nullptr) {
      const auto figure = quantity_of(experiment, cell) == "memory" ? row->held.relative_mean : row->ratio.value;
      if (figure > 0) found.ours = tables::statistic({figure});
      if (!row->note.empty()) result.notes.push_back(fmt::format("{}: {}", cell.label, row->note));
    }
    result.cells.push_back(std::move(found));
  }
  if (report) {
    result.notes.push_back(fmt::format(
        "measured on {} with {} threads; memory is what LibTorch's allocator handed out; intervals are in cost.md",
        report->cpu, report->threads));
    if (report->version != sgdph_version()) result.notes.push_back("measured by version " + report->version);
  }
  compare_with_paper(result);
  return result;
}

}  // namespace sgdph::lab::reproduce
