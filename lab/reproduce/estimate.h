#pragma once

#include <vector>

#include "study/run_plan.h"

namespace sgdph::lab {

/// About how many seconds each run will take, or what is left of it, from a few timed steps and a timed test of each
/// distinct workload (network, images, optimizer). Opens all data and builds everything on the way, so that bad input
/// is a UserError. What is over takes none. Ends early, with zeros, when interrupted.
std::vector<double> estimate_seconds(const std::vector<StudyRun>& runs);

}  // namespace sgdph::lab
