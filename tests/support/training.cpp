#include "support/training.h"

namespace sgdph::test {

std::vector<std::string> our_optimizers() {
  std::vector<std::string> names;
  for (const auto& info : optimizers()) {
    if (info.class_name.rfind("sgdph::", 0) == 0) names.push_back(info.name);
  }
  return names;
}

void run_backward(torch::optim::Optimizer& optimizer, const at::Tensor& loss) {
  if (auto* measuring = dynamic_cast<CurvatureOptimizer*>(&optimizer)) {
    measuring->backward(loss);
  } else {
    loss.backward();
  }
}

double train_step(torch::optim::Optimizer& optimizer, const std::function<at::Tensor()>& loss) {
  optimizer.zero_grad();
  const auto value = loss();
  run_backward(optimizer, value);
  optimizer.step();
  return value.item<double>();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

at::Tensor leaf(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat64).requires_grad_(true);
}

}  // namespace sgdph::test
