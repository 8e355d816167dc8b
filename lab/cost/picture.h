#pragma once

#include <string>

#include "records/cost_record.h"

namespace sgdph::lab::cost {

/// How the time of a step relative to SGDM scales with the batch, as SVG: a panel for each network, a line for each
/// engine with its intervals, both axes logarithmic. Follows the reader's choice of light or dark.
std::string cost_picture(const records::CostReport& report);

}  // namespace sgdph::lab::cost
