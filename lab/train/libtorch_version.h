#pragma once

#include <string>

namespace sgdph::lab {

/// Of the headers this program was built with.
std::string libtorch_version();

}  // namespace sgdph::lab
