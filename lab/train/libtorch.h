#pragma once

#include <string>

namespace sgdph::lab::train {

/// Of the headers this program was built with.
std::string libtorch_version();

/// Refuses a device that LibTorch does not know or does not see.
void check_device(const std::string& name);

}  // namespace sgdph::lab::train
