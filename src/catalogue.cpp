#include <sgdph/catalogue.h>

#include <sgdph/sgdph.h>

#include "detail/compat.h"
#include "detail/option_fields.h"
#include "stock_options.h"

#include <torch/nn/module.h>

#include <functional>
#include <stdexcept>
#include <type_traits>

namespace sgdph {
namespace {

using detail::CheckedOptions;
using OptimizerPointer = std::unique_ptr<torch::optim::Optimizer>;
using torch::optim::OptimizerParamGroup;

/// A group's parameters with options that are complete.
struct FilledGroup {
  std::vector<at::Tensor> parameters;
  std::unique_ptr<CheckedOptions> options;
};

/// An optimizer: what is said of it, and how to make one.
struct Row {
  OptimizerInfo info;
  std::unique_ptr<CheckedOptions> (*options)() = nullptr;  ///< with their defaults
  OptimizerPointer (*from_groups)(std::vector<FilledGroup> groups, const CheckedOptions& defaults) = nullptr;
  OptimizerPointer (*from_module)(const torch::nn::Module& module, const CheckedOptions& defaults) = nullptr;
};

/// The options as the optimizer's constructor takes them.
template <class Options>
const Options& plain(const Options& options) {
  return options;
}
template <class Options>
const Options& plain(const StockOptions<Options>& options) {
  return options.plain();
}

template <class Type, class = void>
struct HasPartition : std::false_type {};
template <class Type>
struct HasPartition<Type, std::void_t<decltype(std::declval<const Type&>().partition())>> : std::true_type {};

/// `Options` is the field list: ours, or the adapter of LibTorch's.
template <class Type, class Options>
Row row(
    const char* name, const char* label, const char* class_name, const char* title, const char* source,
    double expected_cost = 1) {
  using Plain = std::decay_t<decltype(plain(std::declval<const Options&>()))>;
  Row row;
  row.info = {name, label, class_name, title, source, {}, {}};
  row.info.traits.measures_curvature = std::is_base_of_v<CurvatureOptimizer, Type>;
  row.info.traits.has_blocks = HasPartition<Type>::value;
  row.info.traits.expected_cost = expected_cost;
  Options options;
  row.info.options = detail::describe_fields(options);
  row.options = []() -> std::unique_ptr<CheckedOptions> { return std::make_unique<Options>(); };
  row.from_groups = [](std::vector<FilledGroup> groups, const CheckedOptions& defaults) -> OptimizerPointer {
    std::vector<OptimizerParamGroup> made;
    for (auto& group : groups) {
      made.emplace_back(
          std::move(group.parameters), std::make_unique<Plain>(plain(static_cast<const Options&>(*group.options))));
    }
    auto optimizer = std::make_unique<Type>(made, plain(static_cast<const Options&>(defaults)));
    for (size_t i = 0; i < made.size(); ++i) detail::keep_options(optimizer->param_groups()[i], made[i]);
    return optimizer;
  };
  row.from_module = [](const torch::nn::Module& module, const CheckedOptions& defaults) -> OptimizerPointer {
    const auto& options = plain(static_cast<const Options&>(defaults));
    if constexpr (std::is_constructible_v<Type, const torch::nn::Module&, const Plain&>) {
      return std::make_unique<Type>(module, options);
    } else {
      return std::make_unique<Type>(module.parameters(), options);
    }
  };
  return row;
}

Row baseline(Row row) {
  row.info.traits.baseline = true;
  return row;
}

/// The catalogue.
const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      baseline(row<torch::optim::SGD, StockSGDOptions>(
          "sgdm", "SGDM", "torch::optim::SGD", "SGD with momentum", "LibTorch's")),
      row<torch::optim::Adam, StockAdamOptions>(
          "adam", "Adam", "torch::optim::Adam", "Adam", "Kingma & Ba 2015, LibTorch's"),
      row<torch::optim::AdamW, StockAdamWOptions>(
          "adamw", "AdamW", "torch::optim::AdamW", "Adam with decoupled weight decay",
          "Loshchilov & Hutter 2019, LibTorch's"),
      row<AdaBelief, AdaBeliefOptions>(
          "adabelief", "AdaBelief", "sgdph::AdaBelief", "AdaBelief: steps by the belief in the gradient",
          "Zhuang et al. 2020"),
      row<AdaHessian, AdaHessianOptions>(
          "adahessian", "AdaHessian", "sgdph::AdaHessian",
          "AdaHessian: a Hessian product of the whole network per step", "Yao et al. 2020", 6),
      row<Apollo, ApolloOptions>("apollo", "Apollo", "sgdph::Apollo", "Apollo: diagonal quasi-Newton", "Ma 2020"),
      row<Lion, LionOptions>("lion", "Lion", "sgdph::Lion", "Lion: steps by the sign of momentum", "Chen et al. 2023"),
      row<SGDPH, SGDPHOptions>(
          "sgd-ph", "SGD-PH", "sgdph::SGDPH", "SGD with Partial Hessian", "Sun, Yong & Zhang", 1.4),
  };
  return all;
}

const Row& find_row(const std::string& name) {
  std::string names;
  for (const auto& row : rows()) {
    if (row.info.name == name) return row;
    names += (names.empty() ? "" : ", ") + row.info.name;
  }
  throw std::invalid_argument("unknown optimizer '" + name + "'; there are " + names);
}

/// Runs `action`; what LibTorch's checks, and ours, refuse is the caller's bad value.
template <class Action>
auto with_plain_errors(const Action& action) {
  try {
    return action();
  } catch (const c10::Error& error) {
    throw std::invalid_argument(error.what_without_backtrace());
  }
}

/// `where` opens the message on a bad value.
std::unique_ptr<CheckedOptions> filled_options(const Row& row, const OptionValues& values, const std::string& where) {
  auto options = row.options();
  detail::assign_values(*options, values, where);
  options->check(where);
  return options;
}

}  // namespace

const std::vector<OptimizerInfo>& optimizers() {
  static const auto infos = [] {
    std::vector<OptimizerInfo> infos;
    for (const auto& row : rows()) infos.push_back(row.info);
    return infos;
  }();
  return infos;
}

const OptimizerInfo& optimizer_info(const std::string& name) {
  return find_row(name).info;
}

OptionValues resolve_options(const std::string& optimizer, const OptionValues& given) {
  const auto& row = find_row(optimizer);
  return with_plain_errors([&] {
    const auto options = filled_options(row, given, row.info.label);
    options->fill_unset();
    return detail::values_of(*options);
  });
}

OptimizerPointer make_optimizer(
    const std::string& name, const std::vector<ParameterGroup>& groups, const OptionValues& values) {
  const auto& row = find_row(name);
  return with_plain_errors([&] {
    const auto defaults = filled_options(row, values, row.info.label);
    std::vector<FilledGroup> filled;
    for (const auto& group : groups) {
      auto own = group.values;
      own.insert(values.begin(), values.end());
      const auto where = row.info.label + ", group " + std::to_string(filled.size());
      filled.push_back({group.parameters, filled_options(row, own, where)});
    }
    return row.from_groups(std::move(filled), *defaults);
  });
}

OptimizerPointer make_optimizer(
    const std::string& name, std::vector<at::Tensor> parameters, const OptionValues& values) {
  return make_optimizer(name, std::vector<ParameterGroup>{{std::move(parameters), {}}}, values);
}

OptimizerPointer make_optimizer(const std::string& name, const torch::nn::Module& module, const OptionValues& values) {
  const auto& row = find_row(name);
  return with_plain_errors([&] { return row.from_module(module, *filled_options(row, values, row.info.label)); });
}

}  // namespace sgdph
