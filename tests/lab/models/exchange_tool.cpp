// The lab's side of exchange.py. Tensors go through files of raw numbers, float64.
//   sgdph_exchange list    model form norm classes
//   sgdph_exchange save    model form norm classes weights.pt
//   sgdph_exchange predict model form norm classes weights.pt dtype images.raw n size scores.raw

#include "base/error.h"
#include "base/files.h"
#include "models/image_model.h"
#include "models/models.h"
#include "models/state_dict.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>

namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::models;

std::shared_ptr<ImageModel> model_of(const std::vector<std::string>& arguments, Kernels kernels = Kernels::Fast) {
  ModelOptions options;
  options.kernels = kernels;
  options.name = arguments.at(1);
  options.form = arguments.at(2) == "imagenet" ? Form::ImageNet : Form::Cifar;
  options.norm = norm_from_name(arguments.at(3));
  options.classes = std::stoll(arguments.at(4));
  at::manual_seed(1);
  return make_model(options);
}

void print_tensors(const torch::nn::Module& module, const std::string& prefix = "") {
  const auto print = [&](const auto& item) {
    if (item.value().defined()) fmt::print("{}{} {}\n", prefix, item.key(), fmt::join(item.value().sizes(), " "));
  };
  for (const auto& item : module.named_parameters(false)) print(item);
  for (const auto& item : module.named_buffers(false)) print(item);
  for (const auto& child : module.named_children()) print_tensors(*child.value(), prefix + child.key() + ".");
}

void predict(const std::vector<std::string>& arguments) {
  const auto dtype = arguments.at(6) == "float64" ? torch::kDouble : torch::kFloat;
  // In float32 by the operators Python uses: another order of sums alone moves the scores of ResNet18 by 2e-6. In
  // float64 by our own layers, where that does not matter.
  auto model = model_of(arguments, dtype == torch::kDouble ? Kernels::Fast : Kernels::Stock);
  load_state_dict(*model, read_file(arguments.at(5)), arguments.at(5));
  model->eval();
  model->to(dtype);
  auto raw = read_file(arguments.at(7));
  const auto count = std::stoll(arguments.at(8));
  const auto size = std::stoll(arguments.at(9));
  if (raw.size() != static_cast<size_t>(count * 3 * size * size) * sizeof(double)) fail("images have another size");
  const auto images = at::from_blob(raw.data(), {count, 3, size, size}, torch::kDouble).to(dtype);
  torch::NoGradGuard no_grad;
  const auto scores = model->forward(images).to(torch::kDouble).contiguous();
  write_file_atomically(arguments.at(10), {{static_cast<const char*>(scores.data_ptr()), scores.nbytes()}});
}

void save(const std::vector<std::string>& arguments) {
  auto model = model_of(arguments);
  torch::NoGradGuard no_grad;
  for (int i = 0; i < 10; ++i) model->forward(at::randn({4, 3, 64, 64}));  // moves the running statistics
  write_file_atomically(arguments.at(5), {save_state_dict(*model)});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  at::set_num_threads(1);
  try {
    if (arguments.at(0) == "list") {
      print_tensors(*model_of(arguments));
    } else if (arguments.at(0) == "save") {
      save(arguments);
    } else {
      predict(arguments);
    }
  } catch (const UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
