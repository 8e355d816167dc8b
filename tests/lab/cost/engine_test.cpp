#include "cost/engine.h"
#include "cost/engine_run.h"
#include "cost/timing.h"
#include "optimizers/options.h"
#include "support/checks.h"
#include "support/networks.h"

#include <gtest/gtest.h>
#include <sgdph/sgdph.h>

#include <set>

namespace sgdph::lab::cost::engine_test {
namespace {

using test::error_of;

Workload small() {
  Workload workload;
  workload.model = "resnet8";
  workload.batch_size = 4;
  return workload;
}

TEST(Engines, AreEveryOptimizerAndTheOtherWaysUnderNamesOfTheirOwn) {
  const auto names = engine_names();
  for (const auto& name : optimizers::optimizer_names()) EXPECT_EQ(engine(name).kernels, models::Kernels::Fast);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(engines_from_text("all").size(), names.size());
  EXPECT_TRUE(engine("published").published);
  EXPECT_EQ(engine("sgd-ph-1/8-every-4").settings.optimizer.at("refresh_every"), 4);
  EXPECT_EQ(engine("sgd-ph-1/8").settings.optimizer.at("curvature_batch"), "1/8");
  for (const auto& engine : engines()) {
    EXPECT_EQ(engine.name.find_first_of(" ,"), std::string::npos) << engine.name;
    EXPECT_FALSE(engine.settings.option("shift_guard", false)) << engine.name;
  }
}

TEST(Engines, AreChosenByNameInTheOrderOfTheTable) {
  const auto chosen = engines_from_text("published,adam");
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].name, "adam");
  EXPECT_NE(error_of([] { engines_from_text("publisched"); }).find("published"), std::string::npos);
  EXPECT_NE(error_of([] { engines_from_text("adam,adam"); }).find("twice"), std::string::npos);
  EXPECT_NE(error_of([] { engines_from_text("adam,"); }).find("unknown engine"), std::string::npos);
}

TEST(Engines, BringTheSgdmTheyAreComparedWith) {
  const auto names = [](const std::string& text) {
    std::vector<std::string> all;
    for (const auto& engine : with_references(engines_from_text(text))) all.push_back(engine.name);
    return all;
  };
  EXPECT_EQ(names("adam"), (std::vector<std::string>{"sgdm", "adam"}));
  EXPECT_EQ(names("published,sgdm"), (std::vector<std::string>{"sgdm", "sgdm-stock", "published"}));
}

TEST(PublishedProduct, EqualsTheProductOfTheBlockAlone) {
  auto problem = test::make_problem("BatchNorm");
  const auto parameters = problem.model->parameters();
  for (size_t block = 0; block < parameters.size(); ++block) {
    if (parameters[block].dim() != 1) continue;
    const auto published = published_product(problem.loss(), parameters, block);
    const auto gradients = sgdph::gradients(problem.loss(), parameters, true, true);
    const auto ours = hessian_vector_product(gradients[block], parameters[block], torch::ones_like(parameters[block]));
    EXPECT_TRUE(torch::allclose(published.row_sum, ours, 1e-10, 1e-12)) << block;
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(torch::allclose(published.gradients[i], gradients[i], 1e-10, 1e-12));
    }
  }
}

TEST(EngineRun, MakesAnyBlockDueAndOnlyThat) {
  for (const auto* name : {"sgd-ph", "published", "sgd-ph-1/8-every-4"}) {
    EngineRun run(engine(name), small(), TimedBatch(small()));
    ASSERT_GT(run.positions(), 10) << name;
    for (const int64_t position : {3L, 3L, 0L, run.positions() - 1, 7L}) {
      run.prepare(position);
      run.step();
      ASSERT_EQ(run.last_refreshed(), run.blocks()[static_cast<size_t>(position)]) << name;
    }
  }
  EngineRun seldom(engine("sgd-ph-1/8-every-4"), small(), TimedBatch(small()));
  seldom.prepare(tables::kNothingDue);
  seldom.step();
  EXPECT_EQ(seldom.last_refreshed(), "");
  EXPECT_TRUE(EngineRun(engine("adam"), small(), TimedBatch(small())).blocks().empty());
}

TEST(EngineRun, ThePublishedWayTakesTheStepsOfOurs) {
  auto stock = engine("sgd-ph-stock");
  EngineRun ours(stock, small(), TimedBatch(small()));
  EngineRun published(engine("published"), small(), TimedBatch(small()));
  for (int64_t position = 0; position < 3; ++position) {
    for (auto* run : {&ours, &published}) {
      run->prepare(position);
      run->step();
    }
  }
  const auto a = ours.parameters();
  const auto b = published.parameters();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::allclose(a[i], b[i], 1e-4, 1e-6)) << i;
}

TEST(TimeEngines, PairsEveryStepWithSgdmAndCountsRounds) {
  const auto engines = with_references(engines_from_text("sgd-ph,sgd-ph-1/8-every-4,published"));
  double last = 0;
  TimeLimit limit;
  limit.rounds = 4;
  const auto times = time_engines(engines, small(), limit, [&](double fraction, int64_t) {
    EXPECT_GE(fraction, last);
    last = fraction;
  });
  EXPECT_EQ(last, 1);
  ASSERT_EQ(times.engines.size(), engines.size());
  EXPECT_EQ(times.fast_to_stock.size(), 4U);
  for (const auto& engine : times.engines) {
    EXPECT_EQ(engine.steps.size(), 4U) << engine.engine;
    for (const auto& step : engine.steps) EXPECT_GT(step.reference, 0);
  }
  EXPECT_EQ(times.engines[0].ratio().value, 1);
  const auto& seldom = times.engines[3];
  EXPECT_EQ(seldom.steps[1].position, tables::kNothingDue);
  EXPECT_NE(seldom.steps[2].position, tables::kNothingDue);
}

}  // namespace
}  // namespace sgdph::lab::cost::engine_test
