#pragma once

#include <vector>

#include "base/embedded.h"

namespace sgdph::lab::settings {

/// The files of lab/settings/recipes, compiled in.
const std::vector<EmbeddedFile>& builtin_recipes();

}  // namespace sgdph::lab::settings
