#pragma once

#include <vector>

#include "base/embedded.h"

namespace sgdph::lab::reproduce {

/// The files of experiments, compiled in.
const std::vector<EmbeddedFile>& builtin_experiments();
/// The files of experiments/paper, compiled in: what the paper has of the experiment of the same stem.
const std::vector<EmbeddedFile>& builtin_paper_figures();

}  // namespace sgdph::lab::reproduce
