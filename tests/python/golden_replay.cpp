// Replays the golden trajectories of our optimizers and prints the bits of all parameters after every step, a line
// each: setting, step, bytes. The tests of the Python package compare theirs with it.
//   golden_replay [save|load STEP FOLDER]   after that step the optimizer goes into an archive FOLDER/SETTING.pt, or a
//   new
//                                           one reads it there and goes on

#include "support/golden.h"
#include "support/networks.h"
#include "support/training.h"

#include <torch/torch.h>

#include <cstdio>

namespace {

using namespace sgdph;
using namespace sgdph::test;

/// What is done with an archive between two steps.
struct Archive {
  std::string way;  ///< save, load or nothing
  int64_t step = 0;
  std::string folder;
};

void replay(const std::string& setting, const Archive& archive) {
  const auto& problem = read_golden("problem");
  const auto& golden = read_golden(setting);
  NetA model;
  const auto named = model->named_parameters();
  {
    torch::NoGradGuard no_grad;
    for (const auto& item : named) item.value().copy_(golden_tensor(problem.at("initial_params"), item.key()));
  }
  const auto inputs = golden_tensor(problem.at("inputs"));
  const auto labels = golden_tensor(problem.at("labels")).to(torch::kLong);
  int64_t step = 0;
  const auto make = [&] {
    auto made = make_golden_optimizer(golden, model->parameters());
    if (auto* adahessian = dynamic_cast<AdaHessian*>(made.get())) {
      adahessian->set_probe_source([&](const at::Tensor& parameter) {
        size_t i = 0;
        while (!named[i].value().is_same(parameter)) ++i;
        return golden_tensor(problem.at("rademacher").at(step - 1).at(i));
      });
    }
    return made;
  };
  auto optimizer = make();
  if (dynamic_cast<OptimizerBase*>(optimizer.get()) == nullptr) return;  // LibTorch's own
  for (step = 1; step <= golden.at("steps").get<int64_t>(); ++step) {
    for (auto& group : optimizer->param_groups()) group.options().set_lr(golden.at("lr_per_step").at(step - 1));
    train_step(*optimizer, [&] {
      return torch::nn::functional::cross_entropy(model->forward(inputs[step - 1]), labels[step - 1]);
    });
    std::printf("%s %lld ", setting.c_str(), static_cast<long long>(step));
    for (const auto& item : named) {
      const auto flat = item.value().detach().contiguous();
      const auto* bytes = static_cast<const unsigned char*>(flat.data_ptr());
      for (size_t i = 0; i < flat.nbytes(); ++i) std::printf("%02x", static_cast<unsigned>(bytes[i]));
    }
    std::printf("\n");
    if (step != archive.step) continue;
    const auto file = archive.folder + "/" + setting + ".pt";
    if (archive.way == "save") torch::save(*optimizer, file);
    if (archive.way == "load") {
      optimizer = make();
      torch::load(*optimizer, file);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  Archive archive;
  if (argc == 4) archive = {argv[1], std::stoll(argv[2]), argv[3]};
  for (const auto& setting : golden_settings()) replay(setting, archive);
}
