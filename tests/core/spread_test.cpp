// Refresh::Spread: ranks measure different blocks, each on its own part of the batch.

#include "sgd_ph/curvature.h"
#include "signs.h"
#include "support/networks.h"
#include "support/quadratic.h"
#include "support/ranks.h"

#include <cmath>
#include <sstream>

namespace sgdph::test::spread_test {
namespace {

constexpr int kSteps = 26;
constexpr int64_t kImages = 84;  // a whole number for each of 1, 2, 3, 4, 7 ranks
constexpr double kTolerance = 1e-12;

SGDPHOptions spread(Probe probe, Rule rule = Rule::Reference) {
  return SGDPHOptions(0.05).weight_decay(0.01).seed(3).probe_cycle(2).probe(probe).rule(rule).refresh(Refresh::Spread);
}

std::pair<at::Tensor, at::Tensor> batch_of(int step) {
  const auto numbers = torch::arange(kImages * 32, torch::kFloat64);
  return {(numbers * (0.37 + 0.01 * step)).sin().view({kImages, 2, 4, 4}), torch::arange(step, step + kImages) % 4};
}

/// Of a part of the step's images, with the batch norm of that part.
at::Tensor shard_loss(Problem& problem, int step, int64_t shard, int64_t shards) {
  const auto [images, labels] = batch_of(step);
  const auto count = kImages / shards;
  return torch::nn::functional::cross_entropy(
      problem.model->forward(images.narrow(0, shard * count, count)), labels.narrow(0, shard * count, count));
}

/// What the ranks do, in one process that has all shards, written without the library's parts but for the signs.
class Reference {
 public:
  Reference(const SGDPHOptions& options, int64_t ranks)
      : ranks(ranks), problem(make_problem("BatchNorm")), o_(options) {
    held_.resize(problem.model->parameters().size());
  }

  void step(int t) {
    const auto parameters = problem.model->parameters();
    std::vector<std::vector<at::Tensor>> gradients;
    for (int64_t r = 0; r < ranks; ++r) {
      gradients.push_back(torch::autograd::grad({shard_loss(problem, t, r, ranks)}, parameters, {}, true, true));
    }
    const auto all = static_cast<int64_t>(blocks.size());
    const auto left = all - next_, steps = (left + ranks - 1) / ranks, count = (left + steps - 1) / steps;
    const double pace = static_cast<double>(all) / static_cast<double>((all + ranks - 1) / ranks);
    for (int64_t i = 0; i < count; ++i) {
      const auto block = blocks[static_cast<size_t>(next_ + i)];
      auto& held = held_[block];
      const auto z = o_.probe() == Probe::Rademacher
                         ? rademacher_like(parameters[block], {o_.seed(), 0, block, static_cast<uint64_t>(held.count)})
                         : hadamard_row_like(parameters[block], held.count % o_.probe_cycle(), o_.probe_cycle());
      auto sum = torch::zeros_like(z);
      double sharers = 0;
      for (int64_t r = 0; r < ranks; ++r) {
        if (r * count / ranks != i) continue;
        const auto& gradient = gradients[static_cast<size_t>(r)][block];
        sum += z * torch::autograd::grad({gradient.dot(z)}, {parameters[block]}, {}, true)[0];
        sharers += 1;
      }
      held.take(sum / sharers, pace, o_);
    }
    next_ = (next_ + count) % all;

    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto w = parameters[i];
      auto g = torch::zeros_like(w);
      for (const auto& part : gradients) g += part[i] / static_cast<double>(ranks);
      held_[i].move(w, g, o_);
    }
  }

  int64_t ranks;
  Problem problem;
  std::vector<size_t> blocks{1, 2, 4, 5};

 private:
  struct Held {
    at::Tensor momentum, curvature, cycle;
    int64_t count = 0;
    double age = 0;

    void take(const at::Tensor& h, double pace, const SGDPHOptions& o) {
      ++count;
      age += 1 / pace;
      if (o.probe() == Probe::Rademacher) {
        const double old = std::pow(weight(o), 1 / pace);
        curvature = (curvature.defined() ? curvature * old : torch::zeros_like(h)) + (1 - old) * h;
        return;
      }
      const auto rows = o.probe_cycle(), row = (count - 1) % rows;
      cycle = row == 0 ? h : cycle + h;
      if (count <= rows) {
        curvature = cycle / (row + 1);
      } else if (row == rows - 1) {
        const double share = std::max(2 / (pace + 1), static_cast<double>(rows) / static_cast<double>(count));
        curvature = (1 - share) * curvature + share * cycle / rows;
      }
    }

    void move(at::Tensor& w, const at::Tensor& g, const SGDPHOptions& o) {
      const bool paper = o.rule() == Rule::Paper;
      if (!momentum.defined()) momentum = torch::zeros_like(w);
      momentum = paper ? (1 - o.momentum()) * momentum + o.momentum() * g : o.momentum() * momentum + g;
      if (!curvature.defined()) {
        if (paper) w.mul_(1 - o.lr() * o.weight_decay());
        if (!paper) momentum = momentum + o.weight_decay() * w;
        w.sub_(o.lr() * momentum);
        return;
      }
      auto divisor = curvature.abs();
      divisor = torch::maximum(divisor, 0.1 * divisor.mean()) + o.eps();
      if (o.probe() == Probe::Rademacher) divisor = divisor / (1 - std::pow(weight(o), age));
      const auto direction = momentum / divisor;
      w.mul_(1 - o.lr() * o.weight_decay()).sub_(o.lr() * o.lr_so() * direction);
    }

    static double weight(const SGDPHOptions& o) {
      return o.rule() == Rule::Paper ? 1 - o.hessian_momentum() : o.hessian_momentum();
    }
  };

  SGDPHOptions o_;
  std::vector<Held> held_;
  int64_t next_ = 0;
};

/// Ranks that train on their shards; what is left of them.
class Group {
 public:
  explicit Group(int64_t count)
      : ranks(static_cast<size_t>(count)), gradients_(static_cast<size_t>(count)), count_(count) {}

  /// Goes on from what another group has left, if there is one.
  void train(const SGDPHOptions& options, int begin, int end, bool sums, const Group* before = nullptr) {
    found.resize(static_cast<size_t>(count_));
    ranks.run([&](size_t rank) {
      auto& problem = problems_[rank];
      SGDPH optimizer(*problem.model, options);
      if (before != nullptr) {
        std::stringstream saved_model(before->model), saved(before->archive);
        torch::load(problem.model, saved_model);
        torch::load(optimizer, saved);
      }
      const double factor = sums ? static_cast<double>(count_) : 1;
      const auto reduce = [&](Ranks& among, at::Tensor& tensor) { tensor = among.average(tensor) * factor; };
      optimizer.set_all_reduce([&](at::Tensor& tensor) { reduce(ranks, tensor); });
      optimizer.set_ranks(static_cast<int64_t>(rank), count_);
      for (int t = begin; t < end; ++t) {
        optimizer.zero_grad();
        optimizer.backward(shard_loss(problem, t, static_cast<int64_t>(rank), count_) / factor);
        for (const auto& parameter : problem.model->parameters()) reduce(gradients_, parameter.mutable_grad());
        optimizer.step();
        EXPECT_EQ(optimizer.last_step().products, 1);
      }
      found[rank] = problem.model->parameters();
      if (rank != 0) return;
      std::stringstream saved_model, saved;
      torch::save(problem.model, saved_model);
      torch::save(optimizer, saved);
      model = saved_model.str();
      archive = saved.str();
    });
  }

  void expect_equal(Reference& reference, const std::string& what) {
    EXPECT_TRUE(ranks.agreed) << what;
    const auto expected = reference.problem.model->parameters();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE((found[0][i] - expected[i]).abs().max().item<double>(), kTolerance) << what << ", parameter " << i;
      for (const auto& other : found) EXPECT_TRUE(torch::equal(other[i], found[0][i])) << what << ", parameter " << i;
    }
  }

  Ranks ranks;
  std::vector<Parameters> found;
  std::string model, archive;  ///< of rank 0

 private:
  Ranks gradients_;
  int64_t count_;
  // Made one after the other: their seed is that of the process.
  std::vector<Problem> problems_ = [this] {
    std::vector<Problem> problems;
    for (int64_t i = 0; i < count_; ++i) problems.push_back(make_problem("BatchNorm"));
    return problems;
  }();
};

TEST(Spread, EqualsOneProcessThatHasAllShards) {
  for (const auto probe : {Probe::Rademacher, Probe::Hadamard}) {
    for (const auto rule : {Rule::Reference, Rule::Paper}) {
      // Of four blocks: in turn; two at a time; two, of which one is shared; all; all, and shared unevenly.
      for (const int64_t count : {1, 2, 3, 4, 7}) {
        const auto what = std::string(to_string(probe)) + " " + to_string(rule) + " " + std::to_string(count);
        Group group(count);
        group.train(spread(probe, rule), 0, kSteps, /*sums=*/count == 3);
        Reference reference(spread(probe, rule), count);
        for (int t = 0; t < kSteps; ++t) reference.step(t);
        group.expect_equal(reference, what);
        EXPECT_EQ(group.ranks.collectives, kSteps * count) << what << ": one collective a step";
      }
    }
  }
}

TEST(Spread, GoesOnWithAnotherNumberOfRanks) {
  for (const auto probe : {Probe::Rademacher, Probe::Hadamard}) {
    Reference reference(spread(probe), 0);
    std::unique_ptr<Group> before;
    int begin = 0;
    using Part = std::pair<int64_t, int>;
    // Stops within rounds and within cycles.
    for (const auto& [count, end] : {Part{3, 5}, Part{1, 12}, Part{4, 15}, Part{2, kSteps}}) {
      auto group = std::make_unique<Group>(count);
      group->train(spread(probe), begin, end, /*sums=*/false, before.get());
      reference.ranks = count;
      for (int t = begin; t < end; ++t) reference.step(t);
      group->expect_equal(reference, std::string(to_string(probe)) + " up to step " + std::to_string(end));
      before = std::move(group);
      begin = end;
    }
  }
}

TEST(Spread, OfOneRankIsCyclicCorrectedByTheBlocksOwnCount) {
  for (const auto probe : {Probe::Rademacher, Probe::Hadamard}) {
    // At every second step nobody's schedule is the published one, whose bias correction is common to all blocks.
    auto a = make_problem("BatchNorm"), b = make_problem("BatchNorm");
    SGDPH one(*a.model, spread(probe).refresh_every(2)),
        other(*b.model, spread(probe).refresh(Refresh::Cyclic).refresh_every(2));
    for (int t = 0; t < kSteps; ++t) {
      train_step(one, [&] { return shard_loss(a, t, 0, 1); });
      train_step(other, [&] { return shard_loss(b, t, 0, 1); });
      ASSERT_EQ(one.last_step().blocks_refreshed.size(), other.last_step().blocks_refreshed.size());
    }
    for (size_t i = 0; i < a.model->parameters().size(); ++i) {
      EXPECT_TRUE(torch::equal(a.model->parameters()[i], b.model->parameters()[i])) << to_string(probe) << i;
    }
  }
}

TEST(Spread, HasTheNoiseAndTheMemoryOfOneBlockAStep) {
  for (const auto probe : {Probe::Rademacher, Probe::Hadamard}) {
    const auto options = spread(probe);
    std::vector<double> deviations, memories;
    for (const double pace : {1.0, 8.0}) {
      torch::manual_seed(5);
      SGDPHParamState noisy, jump;
      const int refreshes = 40 * static_cast<int>(pace);
      for (int i = 0; i < 4 * refreshes; ++i) {
        sgd_ph::absorb_estimate(noisy, torch::randn({20000}, torch::kFloat64) * std::sqrt(pace), options, pace);
      }
      deviations.push_back(noisy.curvature().std().item<double>());
      for (int i = 0; i < refreshes; ++i)
        sgd_ph::absorb_estimate(jump, torch::ones({1}, torch::kFloat64), options, pace);
      for (int i = 0; i < 8 * static_cast<int>(pace); ++i) {
        sgd_ph::absorb_estimate(jump, torch::zeros({1}, torch::kFloat64), options, pace);
      }
      memories.push_back(jump.curvature().item<double>());
      EXPECT_DOUBLE_EQ(jump.age(), 48);
    }
    EXPECT_NEAR(deviations[1] / deviations[0], 1, 0.05) << to_string(probe);
    // Hadamard forgets in whole cycles; what an average of several has of older ones is little.
    EXPECT_NEAR(memories[1], memories[0], probe == Probe::Rademacher ? 1e-9 : 1e-3) << to_string(probe);
  }
}

/// Two ranks, with blocks x and y; `loss` of a rank and step may be undefined.
void run_two(
    Ranks& ranks,
    const std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y, size_t rank, int step)>& loss,
    const std::function<void(const SGDPH&, const at::Tensor& x, const at::Tensor& y, int step)>& look) {
  ranks.run([&](size_t rank) {
    auto x = leaf({0.7, -0.4}), y = leaf({0, 0, 0});
    SGDPH optimizer(Parameters{x, y}, spread(Probe::Rademacher, Rule::Paper));
    optimizer.set_all_reduce([&](at::Tensor& tensor) { tensor = ranks.average(tensor); });
    optimizer.set_ranks(static_cast<int64_t>(rank), 2);
    for (int t = 0; t < 8; ++t) {
      optimizer.zero_grad();
      if (const auto one = loss(x, y, rank, t); one.defined()) optimizer.backward(one);
      optimizer.step();
      look(optimizer, x, y, t);
    }
  });
  EXPECT_TRUE(ranks.agreed);
  EXPECT_EQ(ranks.collectives, 16) << "once a step, whatever losses reach";
}

TEST(Spread, ABlockThatItsRanksLossDoesNotReachKeepsWhatItHad) {
  Ranks ranks(2);
  run_two(
      ranks,
      [](const at::Tensor& x, const at::Tensor& y, size_t rank, int step) -> at::Tensor {
        if (step == 3) return {};                                         // no rank has a loss
        if (step == 4) return rank == 0 ? x.pow(4).sum() : at::Tensor();  // one has
        if (step % 2 == 1) return rank == 0 ? y.square().sum() : x.pow(4).sum();
        return rank == 0 ? x.pow(4).sum() : y.square().sum();
      },
      [](const SGDPH& optimizer, const at::Tensor& x, const at::Tensor& y, int step) {
        const auto refreshed = optimizer.last_step().blocks_refreshed.size();
        EXPECT_EQ(refreshed, step == 4 ? 1 : step % 2 == 0 ? 2 : 0) << step;
        if (step != 0) return;
        EXPECT_TRUE(torch::allclose(
            optimizer.last_step().blocks_refreshed[0].estimate, 12 * torch::tensor({0.49, 0.16}, torch::kFloat64)));
        EXPECT_TRUE(
            torch::allclose(optimizer.last_step().blocks_refreshed[1].estimate, torch::full({3}, 2.0, torch::kFloat64)))
            << "of the one rank that measured, not half of it";
        EXPECT_EQ(optimizer.param_state(x)->refreshes() + optimizer.param_state(y)->refreshes(), 2);
      });
}

TEST(Spread, AnEstimateThatIsNotFiniteOnItsRankIsDroppedByAll) {
  Ranks ranks(2);
  run_two(
      ranks,
      [](const at::Tensor& x, const at::Tensor& y, size_t, int) {
        return x.square().sum() + y.abs().pow(1.5).sum();  // no second derivative at zero
      },
      [](const SGDPH& optimizer, const at::Tensor& x, const at::Tensor& y, int step) {
        EXPECT_EQ(optimizer.last_step().rejected_estimates, 1);
        EXPECT_TRUE(optimizer.last_step().applied);
        EXPECT_EQ(optimizer.param_state(x)->refreshes(), step + 1);
        EXPECT_EQ(optimizer.param_state(y)->refreshes(), 0);
      });
}

TEST(Spread, LeavesOutFrozenBlocksAndTakesThemInLater) {
  const auto refreshed = [](const SGDPH& optimizer) {
    std::vector<std::string> names;
    for (const auto& block : optimizer.last_step().blocks_refreshed) names.push_back(block.name);
    return names;
  };
  Ranks ranks(2);
  std::vector<Problem> problems{make_problem("BatchNorm"), make_problem("BatchNorm")};
  ranks.run([&](size_t rank) {
    auto& problem = problems[rank];
    const auto gain = problem.model->named_parameters()["1.weight"];
    SGDPH optimizer(*problem.model, spread(Probe::Rademacher));
    optimizer.set_all_reduce([&](at::Tensor& tensor) { tensor = ranks.average(tensor); });
    optimizer.set_ranks(static_cast<int64_t>(rank), 2);
    using Names = std::vector<std::string>;
    const std::vector<Names> expected{
        {"1.bias", "4.weight"}, {"4.bias"}, {"1.weight", "1.bias"}, {"4.weight", "4.bias"}};
    for (int t = 0; t < 4; ++t) {
      gain.requires_grad_(t >= 2);
      optimizer.zero_grad();
      optimizer.backward(shard_loss(problem, t, static_cast<int64_t>(rank), 2));
      optimizer.step();
      EXPECT_EQ(refreshed(optimizer), expected[static_cast<size_t>(t)]) << "step " << t;
      EXPECT_EQ(optimizer.partition().blocks(), 4) << "blocks are what they are on one rank";
    }
  });
  EXPECT_EQ(ranks.collectives, 8);
}

TEST_F(Quadratic, SpreadRefusesWhatItCannotDo) {
  EXPECT_ERROR(SGDPH(parameters, SGDPHOptions().refresh(Refresh::Spread)), "Spread", "Rademacher or Hadamard", "Ones");
  SGDPH optimizer(parameters, spread(Probe::Rademacher).rule(Rule::Paper));
  EXPECT_ERROR(optimizer.set_ranks(2, 2), "set_ranks", "[0, ranks)", "2 of 2");
  EXPECT_ERROR(optimizer.set_ranks(-1, 2), "set_ranks", "-1");
  EXPECT_ERROR(optimizer.set_ranks(0, 0), "set_ranks", "0 of 0");
  optimizer.backward(loss());
  EXPECT_ERROR(optimizer.set_ranks(1, 2), "set_ranks", "zero_grad()");
  optimizer.zero_grad();
  optimizer.set_ranks(1, 2);
  ASSERT_EQ(optimizer.partition().blocks(), 2);
  EXPECT_ERROR(optimizer.backward(loss()), "2 ranks", "set_all_reduce");
  EXPECT_FALSE(x.grad().defined() && x.grad().ne(0).any().item<bool>()) << "nothing changed";
}

TEST(Spread, RanksThatAreNotEachOneOfAllAreNoticedByAll) {
  Ranks ranks(2);
  ranks.run([&](size_t) {
    auto x = leaf({0.7, -0.4}), y = leaf({0.3, 0.2, 0.1});
    SGDPH optimizer(Parameters{x, y}, spread(Probe::Rademacher, Rule::Paper));
    optimizer.set_all_reduce([&](at::Tensor& tensor) { tensor = ranks.average(tensor); });
    optimizer.set_ranks(0, 2);  // both
    optimizer.backward(x.pow(4).sum() + y.pow(4).sum());
    EXPECT_ERROR(optimizer.step(), "SGDPH", "set_ranks", "0 to 1 of 2");
  });
}

}  // namespace
}  // namespace sgdph::test::spread_test
