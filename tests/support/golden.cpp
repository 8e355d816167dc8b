#include "support/golden.h"

#include "support/paths.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace sgdph::test {
namespace {

/// Every entry of tests/golden/netA.json by name.
const nlohmann::json& golden_entries() {
  static const auto all = [] {
    std::ifstream file(std::filesystem::path(kGoldenDir) / "netA.json");
    TORCH_CHECK(file, "the golden trajectories are missing: ", kGoldenDir, "/netA.json");
    return nlohmann::json::parse(file);
  }();
  return all;
}

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

}  // namespace

const nlohmann::json& read_golden(const std::string& name) {
  TORCH_CHECK(golden_entries().contains(name), "there is no golden entry ", name);
  return golden_entries().at(name);
}

at::Tensor golden_tensor(const nlohmann::json& array) {
  const auto data = array.at("data").get<std::vector<double>>();
  return torch::tensor(data, torch::kFloat64).view(array.at("shape").get<std::vector<int64_t>>());
}

at::Tensor golden_tensor(const nlohmann::json& list, const std::string& name) {
  for (const auto& entry : list) {
    if (entry.at("name") == name) return golden_tensor(entry);
  }
  TORCH_CHECK(false, "no golden array is named ", name);
}

std::vector<std::string> golden_settings() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : golden_entries().items()) {
    if (name != "problem") names.push_back(name);
  }
  return names;
}

std::unique_ptr<torch::optim::Optimizer> make_golden_optimizer(const json& golden, const Parameters& parameters) {
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

at::Tensor golden_state(
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

}  // namespace sgdph::test
