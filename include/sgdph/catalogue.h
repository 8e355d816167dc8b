#pragma once

#include <sgdph/api.h>
#include <sgdph/schema.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sgdph {

/// Parameters with option values of their own; what `values` does not name is as in the optimizer's defaults.
struct ParameterGroup {
  std::vector<at::Tensor> parameters;
  OptionValues values;
};

/// Any optimizer of the catalogue by its name and a set of values, for programs that learn at run time which one to
/// use. Options that are not named have the optimizer's defaults. From a module, an optimizer with blocks classifies
/// them by module type; the others take its parameters. A std::invalid_argument says what is wrong with name or values.
SGDPH_API std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const std::string& name, std::vector<at::Tensor> parameters, const OptionValues& values = {});
SGDPH_API std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const std::string& name, const std::vector<ParameterGroup>& groups, const OptionValues& values = {});
SGDPH_API std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const std::string& name, const torch::nn::Module& module, const OptionValues& values = {});

}  // namespace sgdph
