#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>

namespace sgdph::lab::models {

/// Bytes of a state dict (parameters and buffers by name) in the format of Python's torch.save; `torch.load` reads it.
std::string save_state_dict(const torch::nn::Module& model);

/// Loads a state dict that Python's torch.save or `save_state_dict` wrote. Names, shapes and types must agree; nothing
/// is changed unless all do. `where` names the source in the UserError. Also accepts {"state_dict": ...} and
/// {"model": ...} around it, as the field's scripts write, and a "module." prefix of DataParallel.
void load_state_dict(torch::nn::Module& model, const std::string& bytes, const std::string& where);

}  // namespace sgdph::lab::models
