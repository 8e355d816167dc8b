#pragma once

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sgdph::test {

/// A file of tests/golden/netA, without its ending.
nlohmann::json read_golden(const std::string& name);

/// The array {"shape", "data"} as a float64 tensor.
at::Tensor golden_tensor(const nlohmann::json& array);

/// The entry of a list of named arrays.
at::Tensor golden_tensor(const nlohmann::json& list, const std::string& name);

/// The names of all trajectories, sorted.
std::vector<std::string> golden_settings();

}  // namespace sgdph::test
