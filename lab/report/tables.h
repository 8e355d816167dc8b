#pragma once

#include "report/comparison.h"
#include "tables/table.h"

namespace sgdph::lab::report {

/// A row for each series: the table of `sgdph compare`, the reference and the difference beside it if there is one.
tables::Table result_table(const Comparison& comparison);
/// Every run: result, seed, versions, machine, date.
tables::Table run_table(const Comparison& comparison);
/// The settings in which series differ; a column each. Here and below without those that leave the result alone, which
/// say how and where on somebody's machine: data_path, workers, threads and so on.
tables::Table differing_settings(const Comparison& comparison);
/// The settings that all runs of the comparison share.
tables::Table shared_settings(const Comparison& comparison);
/// An experiment of cost: ours beside the paper's.
tables::Table cost_comparison(const ExperimentTable& experiment);

}  // namespace sgdph::lab::report
