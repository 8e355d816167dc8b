#pragma once

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sgdph::test {

/// An entry of tests/golden/netA.json: "problem", or a trajectory by its name.
const nlohmann::json& read_golden(const std::string& name);

/// The array {"shape", "data"} as a float64 tensor.
at::Tensor golden_tensor(const nlohmann::json& array);

/// The entry of a list of named arrays.
at::Tensor golden_tensor(const nlohmann::json& list, const std::string& name);

/// The names of all trajectories, sorted.
std::vector<std::string> golden_settings();

/// The optimizer of a trajectory.
std::unique_ptr<torch::optim::Optimizer> make_golden_optimizer(
    const nlohmann::json& golden, const std::vector<at::Tensor>& parameters);

/// The tensor our optimizer, or LibTorch's, keeps under the golden name; undefined where ours is derived differently.
at::Tensor golden_state(
    torch::optim::Optimizer& optimizer, const std::string& kind, const std::string& field, const at::Tensor& parameter);

}  // namespace sgdph::test
