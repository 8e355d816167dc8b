// Every published trajectory of the golden problem is reproduced step by step.

#include "hessian.h"

#include "support/golden.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace sgdph::test {
namespace {

using nlohmann::json;

double number(const json& hyper, const char* key) {
  return hyper.at(key).get<double>();
}

std::tuple<double, double> betas(const json& hyper) {
  return {hyper.at("betas").at(0).get<double>(), hyper.at("betas").at(1).get<double>()};
}

/// Sets an option if the setting names it, so that the others keep the class's defaults and are tested too.
template <class T, class Set>
void if_named(const json& hyper, const char* key, Set set) {
  if (hyper.contains(key) && !hyper.at(key).is_null()) set(hyper.at(key).get<T>());
}

Groups all_but_last_and_last(const Parameters& parameters, const SGDPHOptions& options) {
  Groups groups;
  groups.push_back(group(Parameters(parameters.begin(), parameters.end() - 1), options));
  groups.push_back(group({parameters.back()}, SGDPHOptions(options).second_order(false)));
  return groups;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const json& golden, const Parameters& parameters) {
  const auto& hyper = golden.at("hyper");
  const std::string kind = golden.at("optimizer");
  if (kind == "sgdph") {
    return std::make_unique<SGDPH>(
        parameters, SGDPHOptions(number(hyper, "lr"))
                        .rule(Rule::Reference)
                        .shift_guard(false)
                        .lr_so(number(hyper, "tau"))
                        .momentum(number(hyper, "momentum"))
                        .hessian_momentum(number(hyper, "momentum"))
                        .eps(number(hyper, "eps"))
                        .weight_decay(number(hyper, "weight_decay")));
  }
  if (kind == "alg1") {
    const auto options = SGDPHOptions(number(hyper, "tau"))
                             .rule(Rule::Paper)
                             .shift_guard(false)
                             .lr_so(number(hyper, "tau_SO"))
                             .momentum(number(hyper, "b"))
                             .hessian_momentum(number(hyper, "a"))
                             .eps(number(hyper, "eps"))
                             .weight_decay(number(hyper, "eta"));
    if (hyper.at("first_order_last_1d").get<bool>()) {
      return std::make_unique<SGDPH>(all_but_last_and_last(parameters, options), options);
    }
    return std::make_unique<SGDPH>(parameters, options);
  }
  if (kind == "adabelief") {
    AdaBeliefOptions options(number(hyper, "lr"));
    options.betas(betas(hyper)).eps(number(hyper, "eps")).weight_decay(number(hyper, "weight_decay"));
    if_named<bool>(hyper, "amsgrad", [&](bool x) { options.amsgrad(x); });
    if_named<bool>(hyper, "weight_decouple", [&](bool x) { options.weight_decouple(x); });
    if_named<bool>(hyper, "fixed_decay", [&](bool x) { options.fixed_decay(x); });
    if_named<bool>(hyper, "rectify", [&](bool x) { options.rectify(x); });
    if_named<bool>(hyper, "degenerated_to_sgd", [&](bool x) { options.degenerated_to_sgd(x); });
    return std::make_unique<AdaBelief>(parameters, options);
  }
  if (kind == "adahessian") {
    return std::make_unique<AdaHessian>(
        parameters, AdaHessianOptions(number(hyper, "lr"))
                        .betas(betas(hyper))
                        .eps(number(hyper, "eps"))
                        .weight_decay(number(hyper, "weight_decay"))
                        .hessian_power(number(hyper, "hessian_power")));
  }
  if (kind == "apollo") {
    ApolloOptions options(number(hyper, "lr"));
    options.beta(number(hyper, "beta")).eps(number(hyper, "eps")).rebound(hyper.at("rebound").get<std::string>());
    options.warmup(hyper.at("warmup").get<int64_t>()).weight_decay(number(hyper, "weight_decay"));
    if_named<double>(hyper, "init_lr", [&](double x) { options.init_lr(x); });
    if_named<std::string>(hyper, "weight_decay_type", [&](const std::string& x) { options.weight_decay_type(x); });
    return std::make_unique<Apollo>(parameters, options);
  }
  if (kind == "sgd") {
    torch::optim::SGDOptions options(number(hyper, "lr"));
    options.momentum(number(hyper, "momentum")).weight_decay(number(hyper, "weight_decay"));
    if_named<bool>(hyper, "nesterov", [&](bool x) { options.nesterov(x); });
    return std::make_unique<torch::optim::SGD>(parameters, options);
  }
  if (kind == "adam") {
    torch::optim::AdamOptions options(number(hyper, "lr"));
    options.betas(betas(hyper)).eps(number(hyper, "eps")).weight_decay(number(hyper, "weight_decay"));
    if_named<bool>(hyper, "amsgrad", [&](bool x) { options.amsgrad(x); });
    return std::make_unique<torch::optim::Adam>(parameters, options);
  }
  if (kind == "adamw") {
    return std::make_unique<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(number(hyper, "lr"))
                        .betas(betas(hyper))
                        .eps(number(hyper, "eps"))
                        .weight_decay(number(hyper, "weight_decay")));
  }
  throw std::invalid_argument("unknown optimizer " + kind);
}

/// The tensor our optimizer, or LibTorch's, keeps under the golden name; undefined where ours is derived differently.
at::Tensor state_tensor(
    torch::optim::Optimizer& optimizer, const std::string& kind, const std::string& field,
    const at::Tensor& parameter) {
  if (kind == "sgdph" || kind == "alg1") {
    auto& state = state_of<SGDPHParamState>(optimizer, parameter);
    if (field == "momentum_buffer" || field == "M_G") return state.momentum_buffer();
    if (field == "diag" || field == "M_H") return state.curvature();
  } else if (kind == "adabelief") {
    auto& state = state_of<AdaBeliefParamState>(optimizer, parameter);
    if (field == "exp_avg") return state.exp_avg();
    if (field == "exp_avg_var") return state.exp_avg_var();
    if (field == "max_exp_avg_var") return state.max_exp_avg_var();
  } else if (kind == "adahessian") {
    auto& state = state_of<AdaHessianParamState>(optimizer, parameter);
    if (field == "exp_avg") return state.exp_avg();
    if (field == "exp_hessian_diag_sq") return state.exp_hessian_diag_sq();
  } else if (kind == "apollo") {
    auto& state = state_of<ApolloParamState>(optimizer, parameter);
    if (field == "exp_avg_grad") return state.exp_avg_grad();
    if (field == "approx_hessian") return state.approx_hessian();
    if (field == "update") return state.update();
  } else if (kind == "sgd") {
    if (field == "momentum_buffer") {
      return state_of<torch::optim::SGDParamState>(optimizer, parameter).momentum_buffer();
    }
  } else if (kind == "adam") {
    auto& state = state_of<torch::optim::AdamParamState>(optimizer, parameter);
    if (field == "exp_avg") return state.exp_avg();
    if (field == "exp_avg_sq") return state.exp_avg_sq();
    if (field == "max_exp_avg_sq") return state.max_exp_avg_sq();
  } else if (kind == "adamw") {
    auto& state = state_of<torch::optim::AdamWParamState>(optimizer, parameter);
    if (field == "exp_avg") return state.exp_avg();
    if (field == "exp_avg_sq") return state.exp_avg_sq();
  }
  ADD_FAILURE() << "no state field " << field << " for " << kind;
  return {};
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, TrajectoryIsReproduced) {
  const auto problem = read_golden("problem");
  const auto golden = read_golden(GetParam());
  const std::string kind = golden.at("optimizer");
  NetA model;
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
  const auto optimizer = make_optimizer(golden, model->parameters());
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
    const double loss = train_step(*optimizer, [&] {
      return torch::nn::functional::cross_entropy(model->forward(inputs[step - 1]), labels[step - 1]);
    });
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
          auto ours = state_tensor(*optimizer, kind, field, named[name]);
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

INSTANTIATE_TEST_SUITE_P(NetA, Golden, testing::ValuesIn(golden_settings()), [](const auto& info) {
  return info.param;
});

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
}  // namespace sgdph::test
