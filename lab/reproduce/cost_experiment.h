#pragma once

#include <filesystem>

#include "cost/cost.h"
#include "reproduce/result.h"

namespace sgdph::lab::reproduce {

/// What an experiment of cost measures: the wanted optimizers as engines, on the network and batch of its settings.
cost::CostOptions cost_options_of(const Experiment& experiment, const Selection& selection);

/// Where its report is kept.
std::filesystem::path cost_folder(const cost::CostOptions& options, const std::filesystem::path& output_dir);

/// A report that is there and has every figure; nothing if there is none or some are missing. A UserError names a file
/// that cannot be read.
std::optional<records::CostReport> finished_cost_report(
    const cost::CostOptions& options, const std::filesystem::path& output_dir);

/// Time and memory from the report, beside the paper's.
ExperimentResult collect_cost_result(
    const Experiment& experiment, const Selection& selection, const std::optional<records::CostReport>& report);

}  // namespace sgdph::lab::reproduce
