// The smallest training loop with SGD-PH: two lines differ from a loop with torch::optim::SGD.

#include <sgdph/sgdph.h>

#include <torch/torch.h>

#include <iostream>

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1).bias(false)), torch::nn::BatchNorm2d(8),
      torch::nn::ReLU(), torch::nn::AdaptiveAvgPool2d(2), torch::nn::Flatten(), torch::nn::Linear(32, 2));

  sgdph::SGDPH optimizer(*model, sgdph::SGDPHOptions(0.01).weight_decay(5e-3));
  std::cout << optimizer.partition();

  // Toy data: is the upper half of the image brighter than the lower one?
  const auto x = torch::randn({256, 1, 8, 8});
  const auto y = x.slice(2, 0, 4).mean({1, 2, 3}).gt(x.slice(2, 4, 8).mean({1, 2, 3})).to(torch::kLong);
  double accuracy = 0;
  for (int step = 1; step <= 200; ++step) {
    optimizer.zero_grad();
    const auto out = model->forward(x);
    const auto loss = torch::nn::functional::cross_entropy(out, y);
    optimizer.backward(loss);
    optimizer.step();
    accuracy = out.argmax(1).eq(y).to(torch::kFloat).mean().item<double>();
    if (step % 50 == 0)
      std::cout << "step " << step << ": loss " << loss.item<double>() << ", accuracy " << accuracy << '\n';
  }
  return accuracy > 0.8 ? 0 : 1;
}
