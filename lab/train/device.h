#pragma once

#include <string>

namespace sgdph::lab::train {

/// Refuses a device that LibTorch does not know or does not see.
void check_device(const std::string& name);

}  // namespace sgdph::lab::train
