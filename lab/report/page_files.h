#pragma once

#include <vector>

#include "base/embedded.h"

namespace sgdph::lab::report {

/// The files of lab/report/page, compiled in, and Chart.js as chart.js unless there was none when the program was
/// built.
const std::vector<EmbeddedFile>& page_files();

}  // namespace sgdph::lab::report
