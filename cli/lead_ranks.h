#pragma once

#include <cstdint>
#include <functional>

#include "base/process.h"
#include "settings/settings.h"

namespace sgdph::cli {

/// A study whose runs are shared by ranks: rank 0 does `study` and starts its runs by the function it gets; the others
/// start the same run each time, with a port that rank 0 chooses, and say nothing. One process is a study as it was.
/// `given`: options of the command line, which get each rank's share of threads.
int lead_ranks(lab::settings::Layer& given, int64_t jobs, const std::function<int(const lab::RunProcess& run)>& study);

}  // namespace sgdph::cli
