#pragma once

#include <string>
#include <vector>

#include "study/summary.h"

namespace sgdph::lab::study {

/// What a table of a comparison shows, in one sentence: who is first, who cannot be told from it, and what SGD-PH cost.
/// Over seeds two means are told apart by Welch's t-test at 95 %; of single runs, by what so many test images can tell.
std::string reading(const std::vector<SummaryRow>& rows);

/// Whether a row, of finished runs, cannot be told from the first one.
bool is_within_noise(const SummaryRow& first, const SummaryRow& row);

}  // namespace sgdph::lab::study
