#pragma once

#include <vector>

#include "report/comparison.h"

namespace sgdph::lab::report {

/// Labels by the optimizer, and the settings that are not as with most of its series; then in the optimizers' order.
void label_series(std::vector<Series>& series);

/// Titles for those that are made of runs alone, and names for files, no two of them alike.
void name_comparisons(std::vector<Comparison>& comparisons);

}  // namespace sgdph::lab::report
