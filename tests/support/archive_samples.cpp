#include "support/archive_samples.h"

#include <sgdph/sgdph.h>

#include <torch/torch.h>
#include <torch/version.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

#include "support/training.h"

namespace sgdph::test {
namespace {

constexpr int64_t kSaved = 7;
constexpr int64_t kEnd = 12;

/// Convolution, BatchNorm and a linear layer: kernels, blocks and a shift-invariant bias.
struct TinyImpl : torch::nn::Module {
  TinyImpl() : conv(torch::nn::Conv2dOptions(1, 3, 3)), norm(3), last(3, 3) {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("last", last);
    to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    double phase = 0.5;
    for (auto& item : named_parameters()) {
      phase += 1;
      auto& value = item.value();
      value.copy_((torch::arange(value.numel(), torch::kFloat64) * 0.7 + phase).sin().view(value.sizes()) * 0.5);
      if (item.key() == "norm.weight") value.add_(1);
    }
  }
  at::Tensor forward(const at::Tensor& x) { return last(torch::tanh(norm(conv(x))).mean({2, 3})); }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::Linear last;
};
TORCH_MODULE(Tiny);

void train(Tiny& model, torch::optim::Optimizer& optimizer, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    const auto places = torch::arange(6 * 25, torch::kFloat64) * 1.3 + static_cast<double>(step);
    const auto inputs = places.sin().view({6, 1, 5, 5});
    const auto labels = torch::arange(6, torch::kLong).remainder(3);
    train_step(optimizer, [&] { return torch::nn::functional::cross_entropy(model->forward(inputs), labels); });
  }
}

nlohmann::json values_of(const Tiny& model) {
  auto values = nlohmann::json::object();
  for (const auto& item : model->named_parameters()) {
    const auto flat = item.value().detach().flatten();
    values[item.key()] = std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  }
  return values;
}

at::Tensor tensor_of(const nlohmann::json& values, const std::string& name, const at::Tensor& like) {
  return torch::tensor(values.at(name).get<std::vector<double>>(), torch::kFloat64).view(like.sizes());
}

/// Two groups, so that options are read per group: the norm layer and the rest.
template <class Optimizer, class Options>
ArchiveSample sample(std::string name, const Options& options, const Options& other_options) {
  const auto make = [=](const torch::nn::Module& model, bool other) -> std::unique_ptr<torch::optim::Optimizer> {
    const auto& chosen = other ? other_options : options;
    Parameters norm, rest;
    for (const auto& item : model.named_parameters()) {
      (item.key().find("norm") == 0 ? norm : rest).push_back(item.value());
    }
    Groups groups;
    groups.push_back(group(rest, chosen));
    groups.push_back(group(norm, Options(chosen).lr(chosen.lr() * 0.5).weight_decay(other ? 0 : 0.02)));
    return std::make_unique<Optimizer>(groups, chosen);
  };
  return {std::move(name), make};
}

ArchiveSample sample_of_module(std::string name, const SGDPHOptions& options, const SGDPHOptions& other_options) {
  const auto make = [=](const torch::nn::Module& model, bool other) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<SGDPH>(model, other ? other_options : options);
  };
  return {std::move(name), make};
}

}  // namespace

const std::vector<ArchiveSample>& archive_samples() {
  static const auto samples = [] {
    const auto sgd_ph = [] { return SGDPHOptions(0.02).weight_decay(0.005).seed(5); };
    const auto other = SGDPHOptions(7).weight_decay(0.9).eps(3).momentum(0.1).hessian_momentum(0.2).lr_so(9).seed(99);
    return std::vector<ArchiveSample>{
        sample<SGDPH>("sgd-ph", sgd_ph(), other),
        sample_of_module("sgd-ph-module", sgd_ph().curvature_floor(0.3).refresh_every(2), other),
        sample<SGDPH>("sgd-ph-paper", sgd_ph().rule(Rule::Paper), other),
        sample<SGDPH>("sgd-ph-rademacher", sgd_ph().probe(Probe::Rademacher), other),
        sample<SGDPH>(
            "sgd-ph-joint", sgd_ph().probe(Probe::Rademacher).refresh(Refresh::Joint).refresh_every(2), other),
        sample<SGDPH>("sgd-ph-hadamard", sgd_ph().probe(Probe::Hadamard).probe_cycle(4).refresh(Refresh::All), other),
        sample<AdaBelief>(
            "adabelief", AdaBeliefOptions(0.01).weight_decay(0.1), AdaBeliefOptions(5).betas({0, 0}).rectify(false)),
        sample<AdaBelief>(
            "adabelief-amsgrad", AdaBeliefOptions(0.01).weight_decay(0.1).amsgrad(true).rectify(false),
            AdaBeliefOptions(5).betas({0, 0})),
        sample<AdaHessian>("adahessian", AdaHessianOptions(0.05).seed(4), AdaHessianOptions(3).seed(77)),
        sample<Apollo>("apollo", ApolloOptions(0.02).warmup(4), ApolloOptions(3).warmup(2).init_lr(1)),
        sample<Apollo>(
            "apollo-belief", ApolloOptions(0.02).warmup(9).init_lr(1e-4).rebound("belief"),
            ApolloOptions(3).warmup(2).weight_decay_type("stable")),
    };
  }();
  return samples;
}

void write_archive_samples(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& sample : archive_samples()) {
    Tiny model;
    const auto optimizer = sample.make(*model, false);
    train(model, *optimizer, 0, kSaved);
    torch::save(*optimizer, (folder / (sample.name + ".pt")).string());
    nlohmann::json record;
    record["libtorch"] = TORCH_VERSION;
    record["saved"] = values_of(model);
    train(model, *optimizer, kSaved, kEnd);
    record["end"] = values_of(model);
    std::ofstream(folder / (sample.name + ".json")) << record.dump() << '\n';
  }
}

double ContinuedSample::largest() const {
  double largest = 0;
  for (const auto& [name, difference] : differences) largest = std::max(largest, difference);
  return largest;
}

ContinuedSample continue_archive_sample(const ArchiveSample& sample, const std::filesystem::path& folder) {
  std::ifstream file(folder / (sample.name + ".json"));
  TORCH_CHECK(file, "there is no sample ", sample.name, " in ", folder.string());
  const auto record = nlohmann::json::parse(file);
  Tiny model;
  {
    torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      item.value().copy_(tensor_of(record.at("saved"), item.key(), item.value()));
    }
  }
  const auto optimizer = sample.make(*model, true);
  torch::load(*optimizer, (folder / (sample.name + ".pt")).string());
  train(model, *optimizer, kSaved, kEnd);
  ContinuedSample continued;
  continued.libtorch = record.value("libtorch", "1.13.0");  // as Debian 12's calls itself
  for (const auto& item : model->named_parameters()) {
    const auto expected = tensor_of(record.at("end"), item.key(), item.value());
    continued.differences[item.key()] = (item.value() - expected).abs().max().item<double>();
  }
  return continued;
}

}  // namespace sgdph::test
