#include "dist/group.h"
#include "dist/gradient_buckets.h"
#include "support/rank_processes.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

namespace sgdph::lab::dist {
namespace {

TEST(Group, OfOneSendsNothing) {
  Group group;
  auto tensor = torch::tensor({1., 2.});
  group.sum(tensor);
  group.broadcast(tensor);
  std::string bytes = "abc";
  group.broadcast(bytes);
  EXPECT_TRUE(torch::equal(tensor, torch::tensor({1., 2.})));
  EXPECT_EQ(bytes, "abc");
  EXPECT_EQ(group.gather(3), std::vector<double>{3});
  EXPECT_TRUE(group.any(true));
  EXPECT_FALSE(group.any(false));
  EXPECT_EQ(group.collectives(), 0);
}

RANK_TEST(Group, OfThreeSumsSendsAndGathers, 3) {
  const auto rank = static_cast<double>(group.rank());
  auto tensor = torch::full({5}, rank + 1, torch::kFloat64);
  group.sum(tensor);
  EXPECT_TRUE(torch::equal(tensor, torch::full({5}, 6., torch::kFloat64)));
  auto first = torch::full({2}, rank);
  group.broadcast(first);
  EXPECT_TRUE(torch::equal(first, torch::zeros({2})));
  for (const std::string text : {"", "the same everywhere", "x"}) {
    std::string bytes = group.is_first() ? text : std::string(static_cast<size_t>(group.rank()), 'z');
    group.broadcast(bytes);
    EXPECT_EQ(bytes, text);
  }
  EXPECT_EQ(group.gather(10 * rank), (std::vector<double>{0, 10, 20}));
  EXPECT_TRUE(group.any(rank == 2));
  EXPECT_FALSE(group.any(false));
  EXPECT_EQ(group.hosts().size(), 3U);
  if (group.is_first()) group.post("word", "hello");
  EXPECT_EQ(group.wait_for("word"), "hello");
}

TEST(Group, ARankWithOtherFactsEndsAllWithCode75) {
  const auto body = [] {
    auto options = test::quick_group();
    options.facts = {{"lr", environment().rank == 0 ? 0.1 : 0.2}};
    const Group group(environment(), options);
  };
  test::run_in_processes(2, body, {kLostPeers, kLostPeers});
}

TEST(Group, ARankThatGivesUpTakesTheOthersWithIt) {
  const auto body = [] {
    Group group(environment(), test::quick_group());
    group.connect();
    if (group.rank() == 1) {
      group.abandon("its disk is full");
      std::_Exit(0);
    }
    auto tensor = torch::ones({1});
    group.sum(tensor);
    std::this_thread::sleep_for(std::chrono::seconds(20));
  };
  test::run_in_processes(3, body, {kLostPeers, 0, kLostPeers});
}

TEST(Group, ARankThatHangsIsNoticedByRanksThatDoNotMeet) {
  constexpr int kKilled = -1;
  const auto body = [] {
    auto options = test::quick_group();
    options.timeout = 3;
    Group group(environment(), options);
    group.connect();
    if (group.rank() == 1) {
      const auto stopped = ::getpid();
      if (::fork() == 0) {
        ::sleep(8);
        ::kill(stopped, SIGKILL);
        ::_exit(0);
      }
      ::kill(stopped, SIGSTOP);
    }
    std::this_thread::sleep_for(std::chrono::seconds(20));
  };
  test::run_in_processes(3, body, {kLostPeers, kKilled, kLostPeers});
}

TEST(Group, RanksThatSendWhatDoesNotFitEndWithCode75) {
  const auto body = [] {
    auto options = test::quick_group();
    options.timeout = 5;
    Group group(environment(), options);
    group.connect();
    auto tensor = torch::ones({group.is_first() ? 4 : 4000}, torch::kFloat64);
    group.sum(tensor);
    group.sum(tensor);
  };
  test::run_in_processes(2, body, {kLostPeers, kLostPeers});
}

TEST(Group, FurtherFactsThatDifferEndAllWithCode75) {
  const auto body = [] {
    Group group(environment(), test::quick_group());
    group.compare("same", {{"images", 7}});
    group.compare("data", {{"images", group.rank() == 2 ? 8 : 7}});
    group.connect();
  };
  test::run_in_processes(3, body, {kLostPeers, kLostPeers, kLostPeers});
}

struct Few {
  at::Tensor a = torch::ones({4}, torch::kFloat64).set_requires_grad(true);
  at::Tensor b = torch::full({3}, 2., torch::kFloat64).set_requires_grad(true);
  at::Tensor frozen = torch::ones({2}, torch::kFloat64);
  at::Tensor unused = torch::ones({2}, torch::kFloat64).set_requires_grad(true);
  at::Tensor sometimes = torch::ones({2}, torch::kFloat64).set_requires_grad(true);
  std::vector<at::Tensor> all() { return {a, frozen, b, unused, sometimes}; }
};

RANK_TEST(GradientBuckets, SumWhatEveryRankHasAndLeaveUndefinedWhatNobodyHas, 3) {
  const auto rank = static_cast<double>(group.rank());
  for (const int64_t bytes : {8, 40, 1 << 20}) {
    Few net;
    GradientBuckets buckets(net.all(), group, bytes);
    for (int step = 0; step < 3; ++step) {
      for (auto& parameter : net.all()) parameter.mutable_grad().reset();
      auto loss = (rank + 1) * net.a.sum() + net.b.pow(2).sum();
      if (group.rank() == 1) loss = loss + 5 * net.sometimes.sum();
      buckets.arm();
      loss.backward();
      buckets.finish();
      EXPECT_TRUE(torch::equal(net.a.grad(), torch::full({4}, 6., torch::kFloat64)));
      EXPECT_TRUE(torch::equal(net.b.grad(), torch::full({3}, 12., torch::kFloat64)));
      EXPECT_FALSE(net.unused.grad().defined());
      EXPECT_FALSE(net.frozen.grad().defined());
      EXPECT_TRUE(torch::equal(net.sometimes.grad(), torch::full({2}, 5., torch::kFloat64)));
    }
  }
}

RANK_TEST(GradientBuckets, SendOnceForAccumulatedPasses, 2) {
  Few net;
  GradientBuckets buckets(net.all(), group);
  const auto before = group.collectives();
  (net.a.sum() + net.sometimes.sum()).backward();  // this rank's first batch reaches more than the second
  EXPECT_EQ(group.collectives(), before);
  buckets.arm();
  (2 * net.a.sum()).backward();
  buckets.finish();
  EXPECT_EQ(group.collectives(), before + static_cast<int64_t>(buckets.count()));
  EXPECT_TRUE(torch::equal(net.a.grad(), torch::full({4}, 6., torch::kFloat64)));
  EXPECT_TRUE(torch::equal(net.sometimes.grad(), torch::full({2}, 2., torch::kFloat64)));
}

RANK_TEST(GradientBuckets, TravelDuringBackward, 2) {
  Few net;
  GradientBuckets buckets({net.a, net.b}, group, 8);
  buckets.arm();
  (net.a.sum() + net.b.sum()).backward();
  buckets.finish();
  EXPECT_EQ(buckets.count(), 2U);
  EXPECT_EQ(buckets.sent_early(), 2U);
}

RANK_TEST(GradientBuckets, ARankWithoutABatchCountsAsZero, 2) {
  Few net;
  GradientBuckets buckets(net.all(), group);
  buckets.arm();
  if (group.rank() == 0) (3 * net.a.sum()).backward();
  buckets.finish();
  EXPECT_TRUE(torch::equal(net.a.grad(), torch::full({4}, 3., torch::kFloat64)));
  EXPECT_FALSE(net.b.grad().defined());
}

}  // namespace
}  // namespace sgdph::lab::dist
