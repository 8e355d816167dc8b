#pragma once

#include <cstdint>
#include <functional>

#include "base/process.h"
#include "dist/roster.h"
#include "settings/recipe.h"

namespace sgdph::cli {

struct SharedStudy {
  lab::settings::Sources sources;  ///< of the command line
  lab::dist::Facts facts;          ///< what ranks must agree about beside them
  int64_t jobs = 1;
};

/// A study whose runs are shared by ranks: rank 0 does `study` and starts its runs by the function it gets; the others
/// start the same run each time, with a port that rank 0 chooses, and say nothing. One process is a study as it was.
/// `options`: those of the study's runs, which get each rank's share of threads.
int lead_ranks(
    const SharedStudy& shared, lab::settings::Layer& options,
    const std::function<int(const lab::RunProcess& run)>& study);

}  // namespace sgdph::cli
