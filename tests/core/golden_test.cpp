// Every published trajectory of the golden problem is reproduced step by step.

#include <sgdph/fast_operators.h>
#include <sgdph/hessian.h>

#include "support/golden.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::test::golden_test {
namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// What the network is built of: LibTorch's layers, these with the fast operators, or ours.
enum class Layers { Stock, FastOperators, Fused };

class Golden : public testing::TestWithParam<std::tuple<std::string, Layers>> {
 protected:
  ~Golden() override { remove_fast_operators(); }
};

TEST_P(Golden, TrajectoryIsReproduced) {
  const auto problem = read_golden("problem");
  const auto& [setting, layers] = GetParam();
  const auto golden = read_golden(setting);
  const std::string kind = golden.at("optimizer");
  if (layers == Layers::FastOperators) install_fast_operators();
  NetA stock;
  FusedNetA fused;
  std::shared_ptr<torch::nn::Module> model = stock.ptr();
  if (layers == Layers::Fused) model = fused.ptr();
  const auto forward = [&](const at::Tensor& x) { return layers == Layers::Fused ? fused(x) : stock(x); };
  {
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      item.value().copy_(golden_tensor(problem.at("initial_params"), item.key()));
    }
  }
  const auto named = model->named_parameters();
  ASSERT_EQ(named.keys(), golden.at("param_names").get<std::vector<std::string>>());
  const auto inputs = golden_tensor(problem.at("inputs"));
  const auto labels = golden_tensor(problem.at("labels")).to(torch::kLong);
  const auto optimizer = make_golden_optimizer(golden, model->parameters());
  auto* sgdph = dynamic_cast<SGDPH*>(optimizer.get());

  int64_t step = 0;
  if (auto* adahessian = dynamic_cast<AdaHessian*>(optimizer.get())) {
    adahessian->set_probe_source([&](const at::Tensor& parameter) {
      for (size_t i = 0; i < named.size(); ++i) {
        if (named[i].value().is_same(parameter)) return golden_tensor(problem.at("rademacher").at(step - 1).at(i));
      }
      return at::Tensor();
    });
  }

  size_t checked_snapshots = 0;
  size_t checked_estimates = 0;
  for (step = 1; step <= golden.at("steps").get<int64_t>(); ++step) {
    for (auto& group : optimizer->param_groups()) group.options().set_lr(golden.at("lr_per_step").at(step - 1));
    const double loss = train_step(
        *optimizer, [&] { return torch::nn::functional::cross_entropy(forward(inputs[step - 1]), labels[step - 1]); });
    EXPECT_NEAR(loss, golden.at("loss").at(step - 1).get<double>(), 1e-11) << "step " << step;

    const auto expect_estimate = [&](const std::string& name, const at::Tensor& expected) {
      for (const auto& block : sgdph->last_step().blocks_refreshed) {
        if (!block.parameter.is_same(named[name])) continue;
        ++checked_estimates;
        // The softmax bias has row sum 0, and rounding noise of 1e-17 in its place.
        const double tolerance = name == "fc.bias" ? 1e-14 : 1e-12 + 1e-11 * expected.abs().max().item<double>();
        EXPECT_LE(largest_difference(block.estimate.abs(), expected), tolerance) << name << " at step " << step;
        return;
      }
      // Under Rule::Reference the last parameter's product serves nothing and is skipped.
      EXPECT_TRUE(kind == "sgdph" && name == "fc.bias") << name << " was not refreshed at step " << step;
    };
    if (kind == "sgdph") {
      const auto& refresh = golden.at("refresh").at(step - 1);
      expect_estimate(refresh.at("name"), golden_tensor(refresh.at("abs_He")));
      EXPECT_LE(sgdph->last_step().products, 1);
    } else if (kind == "alg1") {
      for (const auto& block : golden.at("abs_He").at(step - 1).at("blocks")) {
        expect_estimate(block.at("name"), golden_tensor(block));
      }
    }

    for (size_t i = 0; i < golden.at("snapshots").size(); ++i) {
      const auto& snapshot = golden.at("snapshots").at(i);
      if (snapshot.at("step") != step) continue;
      ++checked_snapshots;
      const double amplification = golden.at("sensitivity").at("amplification").at(i);
      const double tolerance = 1e-12 * std::max(1.0, amplification);
      for (const auto& item : named) {
        const auto expected = golden_tensor(snapshot.at("params"), item.key());
        EXPECT_LE(largest_difference(item.value().detach(), expected), tolerance) << item.key() << " at step " << step;
      }
      for (const auto& item : model->named_buffers()) {
        if (item.value().dim() == 0) continue;  // num_batches_tracked
        const auto expected = golden_tensor(snapshot.at("buffers"), item.key());
        EXPECT_LE(largest_difference(item.value(), expected), tolerance) << item.key() << " at step " << step;
      }
      if (!snapshot.contains("state")) continue;
      for (const auto& [field, arrays] : snapshot.at("state").items()) {
        for (const auto& array : arrays) {
          const std::string name = array.at("name");
          if (kind == "sgdph" && field == "diag" && name == "fc.bias") continue;  // skipped, see above
          auto ours = golden_state(*optimizer, kind, field, named[name]);
          const auto expected = golden_tensor(array);
          if (!ours.defined()) ours = torch::zeros_like(expected);  // a block before its first refresh
          const double scale = std::max(1.0, expected.abs().max().item<double>());
          EXPECT_LE(largest_difference(ours, expected), tolerance * scale) << field << " of " << name << " at " << step;
        }
      }
    }
  }
  EXPECT_EQ(checked_snapshots, golden.at("snapshots").size());
  // 30 steps, of which six are the last parameter's; or 30 times all second-order blocks.
  const size_t estimates = kind == "sgdph" ? 24 : kind == "alg1" ? 30 * golden.at("second_order_params").size() : 0;
  EXPECT_EQ(checked_estimates, estimates);
}

const auto name_of_setting = [](const testing::TestParamInfo<Golden::ParamType>& info) {
  return std::get<0>(info.param);
};
const auto golden_with = [](Layers layers) {
  return testing::Combine(testing::ValuesIn(golden_settings()), testing::Values(layers));
};
INSTANTIATE_TEST_SUITE_P(NetA, Golden, golden_with(Layers::Stock), name_of_setting);
INSTANTIATE_TEST_SUITE_P(NetAWithFastOperators, Golden, golden_with(Layers::FastOperators), name_of_setting);
INSTANTIATE_TEST_SUITE_P(NetAOfFusedLayers, Golden, golden_with(Layers::Fused), name_of_setting);

TEST(GoldenProblem, AllTrajectoriesArePresent) {
  EXPECT_EQ(golden_settings().size(), 19);
}

TEST(GoldenProblem, BlocksAndProductsOfTheFirstStepAreReproduced) {
  const auto problem = read_golden("problem");
  NetA model;
  {
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      item.value().copy_(golden_tensor(problem.at("initial_params"), item.key()));
    }
  }
  const auto& reference = problem.at("at_initial_point_batch1");
  const auto loss = [&] {
    return torch::nn::functional::cross_entropy(
        model->forward(golden_tensor(problem.at("inputs"))[0]),
        golden_tensor(problem.at("labels"))[0].to(torch::kLong));
  };
  EXPECT_NEAR(loss().item<double>(), reference.at("loss").get<double>(), 1e-11);
  const auto named = model->named_parameters();
  const auto graph = gradients(loss(), model->parameters(), /*create_graph=*/true, /*retain_graph=*/false);
  std::vector<at::Tensor> probes;
  for (size_t i = 0; i < named.size(); ++i) probes.push_back(golden_tensor(problem.at("rademacher").at(0).at(i)));
  const auto products = hessian_vector_product(graph, model->parameters(), probes, /*retain_graph=*/true);
  for (size_t i = 0; i < named.size(); ++i) {
    const auto& name = named[i].key();
    EXPECT_LE(largest_difference(graph[i].detach(), golden_tensor(reference.at("grads"), name)), 1e-12) << name;
    EXPECT_LE(largest_difference(products[i], golden_tensor(reference.at("full_H_times_z1"), name)), 1e-12) << name;
    if (named[i].value().dim() != 1) continue;
    const auto row_sum = hessian_vector_product(graph[i], named[i].value(), torch::ones_like(named[i].value()), true);
    EXPECT_LE(largest_difference(row_sum, golden_tensor(reference.at("H_times_ones_1d"), name)), 1e-12) << name;
  }
  for (const std::string name : problem.at("one_d_param_names")) {
    const auto hessian = brute_force_hessian(loss(), {model->named_parameters()[name]});
    EXPECT_LE(largest_difference(hessian, golden_tensor(reference.at("hessian_blocks_1d"), name)), 1e-12) << name;
    EXPECT_LE(largest_difference(hessian.sum(1), golden_tensor(reference.at("H_times_ones_1d"), name)), 1e-12) << name;
  }
}

}  // namespace
}  // namespace sgdph::test::golden_test
