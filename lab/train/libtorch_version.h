#pragma once

#include <string>

namespace sgdph::lab::train {

/// Of the headers this program was built with.
std::string libtorch_version();

}  // namespace sgdph::lab::train
