// W ranks are one process that accumulates the same W shards.

#include "dist/gradient_buckets.h"
#include "dist/group.h"
#include "optimizers/training_optimizer.h"
#include "support/rank_processes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace sgdph::lab::dist {
namespace {

constexpr int64_t kSteps = 60;
constexpr int64_t kImages = 5;  ///< of the first rank; one more for each of the next: shards need not be equal

/// A smooth network in float64 with blocks, a frozen parameter, a layer nobody uses and one that a single shard uses.
struct NetImpl : torch::nn::Module {
  NetImpl()
      : first(torch::nn::LinearOptions(6, 7).bias(false)),
        norm1(7),
        second(7, 6),
        norm2(std::vector<int64_t>{6}),
        last(6, 4),
        unused(3, 3),
        sometimes(4) {
    register_module("first", first);
    register_module("norm1", norm1);
    register_module("second", second);
    register_module("norm2", norm2);
    register_module("last", last);
    register_module("unused", unused);
    register_module("sometimes", sometimes);
    to(torch::kFloat64);
    const torch::NoGradGuard no_grad;
    norm1->bias.uniform_(-0.5, 0.5);
    norm2->weight.uniform_(0.5, 1.5);
    second->bias.requires_grad_(false);
  }
  at::Tensor forward(const at::Tensor& x, bool with_more) {
    auto y = torch::tanh(norm1->forward(first->forward(x)));
    y = last->forward(torch::tanh(norm2->forward(second->forward(y))));
    return with_more ? sometimes->forward(y) : y;
  }
  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm1;
  torch::nn::Linear second;
  torch::nn::LayerNorm norm2;
  torch::nn::Linear last;
  torch::nn::Linear unused;
  torch::nn::BatchNorm1d sometimes;
};
TORCH_MODULE(Net);

/// The loss of a rank's shard, times its part of the step's images.
at::Tensor shard_loss(Net& net, int64_t step, int64_t rank, int64_t ranks) {
  torch::manual_seed(static_cast<uint64_t>(1000 * step + rank));
  const auto images = kImages + rank;
  const auto x = torch::randn({images, 6}, torch::kFloat64);
  const auto labels = torch::randint(4, {images}, torch::kLong);
  const auto all = static_cast<double>(ranks * kImages + ranks * (ranks - 1) / 2);
  const auto loss = torch::nn::functional::cross_entropy(net->forward(x, rank == 1 && step % 2 == 0), labels);
  return loss * (static_cast<double>(images) / all);
}

struct Case {
  std::string name;
  optimizers::OptimizerValues values;
};

std::string label(const Case& one) {
  return one.name + nlohmann::json(one.values).dump();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& name : optimizers::optimizer_names()) all.push_back({name, {{"lr", 0.01}}});
  for (const auto* probe : {"ones", "rademacher", "hadamard"}) {
    for (const auto* refresh : {"cyclic", "all", "joint"}) {
      if (std::string(refresh) == "joint" && std::string(probe) != "rademacher") continue;  // refused by the optimizer
      for (const bool guard : {false, true}) {
        all.push_back({"sgd-ph", {{"lr", 0.02}, {"probe", probe}, {"refresh", refresh}, {"shift_guard", guard}}});
      }
    }
  }
  all.push_back({"sgd-ph", {{"lr", 0.02}, {"rule", "paper"}, {"momentum", 0.1}, {"hessian_momentum", 0.1}}});
  all.push_back({"sgd-ph", {{"lr", 0.02}, {"refresh_every", 3}, {"weight_decay", 0.01}}});
  return all;
}

struct Run {
  Net net{nullptr};
  std::unique_ptr<optimizers::TrainingOptimizer> optimizer;

  explicit Run(const Case& one) {
    torch::manual_seed(7);
    net = Net();
    optimizer = optimizers::make_optimizer(*net, one.name, optimizers::resolve_optimizer(one.name, one.values), 5);
  }
  void clear() {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
  }
};

/// As one process: all shards one after the other.
std::vector<at::Tensor> accumulated(const Case& one, int64_t ranks) {
  Run run(one);
  for (int64_t step = 0; step < kSteps; ++step) {
    run.clear();
    for (int64_t rank = 0; rank < ranks; ++rank) run.optimizer->backward(shard_loss(run.net, step, rank, ranks));
    run.optimizer->step();
  }
  return run.net->parameters();
}

/// As this rank of the group. Curvature takes one collective of a step in which it is due, and none otherwise.
std::vector<at::Tensor> of_rank(const Case& one, Group& group) {
  Run run(one);
  int64_t curvatures = 0;
  run.optimizer->share_with_ranks(group.rank(), group.size(), [&](at::Tensor& tensor) {
    ++curvatures;
    group.sum(tensor);
  });
  GradientBuckets buckets(run.net->parameters(), group, 300);
  for (int64_t step = 0; step < kSteps; ++step) {
    run.clear();
    curvatures = 0;
    const auto before = group.collectives();
    const bool due = run.optimizer->curvature_due();
    buckets.arm();
    run.optimizer->backward(shard_loss(run.net, step, group.rank(), group.size()));
    buckets.finish();
    run.optimizer->step();
    EXPECT_EQ(curvatures, due ? 1 : 0) << label(one) << " step " << step;
    EXPECT_EQ(group.collectives() - before, static_cast<int64_t>(buckets.count()) + curvatures);
  }
  return run.net->parameters();
}

void expect_equal_bits_on_all_ranks(const at::Tensor& tensor, Group& group, const std::string& what) {
  auto first = tensor.detach().clone();
  group.broadcast(first);
  EXPECT_TRUE(torch::equal(first, tensor)) << what << " differs between ranks";
}

void compare_all(Group& group, double tolerance) {
  torch::set_num_threads(1);
  for (const auto& one : cases()) {
    const auto expected = accumulated(one, group.size());
    const auto found = of_rank(one, group);
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto scale = std::max(1e-3, expected[i].abs().max().item<double>());
      worst = std::max(worst, (expected[i] - found[i]).abs().max().item<double>() / scale);
      expect_equal_bits_on_all_ranks(found[i], group, label(one));
    }
    EXPECT_LE(worst, tolerance) << label(one);
    EXPECT_TRUE(std::isfinite(worst));
    if (group.is_first()) std::printf("%s: %g\n", label(one).c_str(), worst);
  }
}

/// Hands a gradient on, and tells when a Hessian product comes through.
struct Marker : torch::autograd::Function<Marker> {
  static inline std::function<void()> on_product;
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& gradient) { return gradient.clone(); }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, const torch::autograd::variable_list& products) {
    on_product();
    return products;
  }
};

RANK_TEST(Equality, AllGradientsTravelBeforeTheHessianProductBegins, 2) {
  torch::nn::Linear first(6, 6), last(6, 4);
  torch::nn::BatchNorm1d norm(6);
  torch::nn::Sequential net(first, norm, last);
  const auto values = optimizers::resolve_optimizer("sgd-ph", {{"lr", 0.01}});
  const auto optimizer = optimizers::make_optimizer(*net, "sgd-ph", values, 5);
  GradientBuckets buckets(net->parameters(), group, 100);
  ASSERT_GT(buckets.count(), 2U);
  const auto before = group.collectives();
  int64_t on_their_way = -1;
  const auto activation = norm->forward(first->forward(torch::randn({8, 6})));
  activation.register_hook([](const at::Tensor& gradient) { return Marker::apply(gradient); });
  Marker::on_product = [&] { on_their_way = group.collectives() - before; };
  buckets.arm();
  optimizer->backward(last->forward(activation).pow(2).sum());
  EXPECT_EQ(on_their_way, static_cast<int64_t>(buckets.count()));
  buckets.finish();
}

RANK_TEST(Equality, TwoRanksAreOneProcessToTheLastBit, 2) {
  compare_all(group, 0);
}

RANK_TEST(SlowEquality, ThreeRanksAreOneProcessToRounding, 3) {
  compare_all(group, 1e-13);
}

}  // namespace
}  // namespace sgdph::lab::dist
