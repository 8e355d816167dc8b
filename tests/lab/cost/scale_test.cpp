#include "cost/scale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <sstream>

namespace sgdph::lab::cost::scale_test {
namespace {

/// ResNet50 with a step of 100 ms: a product costs twice the backward pass behind the block.
StepFacts resnet50() {
  StepFacts facts;
  facts.parameters = 25557032;
  facts.blocks = 106;
  facts.block_values = 53120;
  facts.batch_size = 32;
  facts.epoch_images = 1281167;
  facts.bucket_bytes = 25'000'000;
  facts.seconds = 0.1;
  facts.product_seconds = 2 * (0.1 * 2 / 3) * 107 / 212;
  return facts;
}

double ms(double seconds) {
  return std::round(1e3 * seconds);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TEST(Scale, TimesOnTheLinkAreThoseWorkedOutByHand) {
  struct Row {
    int64_t ranks;
    std::array<double, 3> transfer;  // ms at 10, 25, 100 Gb/s
    double hops, ring, tree;         // ms
  };
  for (const auto& row :
       {Row{8, {143, 57, 14}, 1.8, 0.35, 0.15}, Row{32, {159, 63, 16}, 7.8, 1.6, 0.25},
        Row{128, {162, 65, 16}, 32, 6.4, 0.35}, Row{1024, {163, 65, 16}, 256, 51, 0.50}}) {
    size_t i = 0;
    for (const double gigabits : {10., 25., 100.}) {
      const auto found = scale_row(resnet50(), {gigabits, 25}, row.ranks);
      EXPECT_NEAR(1e3 * found.transfer, row.transfer[i++], 0.6) << row.ranks << " ranks, " << gigabits << " Gb/s";
      EXPECT_NEAR(1e3 * found.hops, row.hops, 0.02 * row.hops + 0.03);
      EXPECT_NEAR(1e3 * found.small_ring, row.ring, 0.04 * row.ring);
      EXPECT_NEAR(1e3 * found.small_tree, row.tree, 1e-9);
    }
  }
  EXPECT_EQ(resnet50().buckets(), 5);
  EXPECT_NEAR(resnet50().gradient_bytes() / 1e6, 102.2, 0.05);
}

TEST(Scale, RefreshesOfABlockAreCountedBySteps) {
  struct Row {
    int64_t ranks, period;
    double cyclic, spread;
  };
  for (const auto& row :
       {Row{1, 106, 377.7, 377.7}, Row{8, 14, 47.2, 357.5}, Row{32, 4, 11.8, 312.8}, Row{128, 1, 2.95, 312.8},
        Row{1024, 1, 0.37, 39.1}}) {
    const auto found = scale_row(resnet50(), {}, row.ranks);
    EXPECT_EQ(found.spread_period, row.period);
    EXPECT_NEAR(found.refreshes, row.cyclic, 0.01 * row.cyclic);
    EXPECT_NEAR(found.spread_refreshes, row.spread, 0.01 * row.spread);
  }
}

TEST(Scale, AStepIsWhatTheLinkDoesNotHide) {
  const auto slow = scale_row(resnet50(), {10, 0}, 8), fast = scale_row(resnet50(), {25, 0}, 8);
  EXPECT_EQ(ms(slow.first_order), 176) << "a third of the step, then gradients for longer than the backward pass";
  EXPECT_EQ(ms(fast.first_order), 100);
  EXPECT_EQ(ms(slow.sgd_ph_after), 310);
  EXPECT_NEAR(1e3 * fast.sgd_ph_after, 224.5, 0.1);
  EXPECT_EQ(ms(fast.sgd_ph), 167) << "all of it hidden";
  // The product is hidden where it ends before the gradients have come: with those of the last blocks.
  double sum = 0;
  for (int block = 1; block <= 106; ++block) {
    sum += 100. / 3 + std::max(200. / 3 + 400. / 3 * block / 106, 1e3 * slow.transfer);
  }
  EXPECT_NEAR(1e3 * slow.sgd_ph, sum / 106, 0.1);
  EXPECT_LT(slow.sgd_ph, slow.sgd_ph_after);

  EXPECT_NEAR(1e3 * fast.spread, 169.3, 0.1) << "of neighbours, which wait little for each other";
  EXPECT_NEAR(1e3 * scale_row(resnet50(), {100, 0}, 106).spread, 233.4, 0.2) << "all blocks: the dearest at each step";
}

TEST(Scale, OneRankIsAStepAsItIs) {
  const auto one = scale_row(resnet50(), {1e-3, 1e6}, 1);
  EXPECT_EQ(one.transfer + one.hops + one.small_ring + one.small_tree, 0);
  EXPECT_DOUBLE_EQ(one.first_order, 0.1);
  EXPECT_NEAR(one.sgd_ph, 0.1 + resnet50().product_seconds, 1e-12);
  EXPECT_NEAR(one.spread, one.sgd_ph, 1e-12);
  EXPECT_NEAR(one.efficiency, 1, 1e-12);
  EXPECT_NEAR(one.images_per_second, 32 / one.sgd_ph, 1e-9);
}

TEST(Scale, SaysWhereItStops) {
  std::vector<ScaleRow> rows;
  for (int64_t ranks = 1; ranks <= 1024; ranks *= 2) rows.push_back(scale_row(resnet50(), {10, 25}, ranks));
  const auto text = joined(remarks_of(rows));
  for (const auto* part :
       {"Stops scaling: from 512 ranks on", "From 1024 ranks on hops outweigh bytes",
        "From 512 ranks on a block is refreshed less than once an epoch in turn", "From 128 ranks on every block"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("even with"), std::string::npos) << text;
  rows.resize(3);
  EXPECT_EQ(joined(remarks_of(rows)), "Scales up to 4 ranks: each does at least half of what it does alone.\n");
  EXPECT_TRUE(remarks_of({}).empty());
}

TEST(Scale, ANetworkWithoutBlocksIsFirstOrder) {
  auto facts = resnet50();
  facts.blocks = facts.block_values = 0;
  facts.product_seconds = 0;
  const auto row = scale_row(facts, {}, 8);
  EXPECT_NEAR(row.spread, row.first_order, 1e-12);
  EXPECT_TRUE(std::isfinite(row.refreshes));
}

TEST(Scale, IsPresentedAsAModelInEveryFormat) {
  ScaleReport report;
  report.model = "resnet50";
  report.step = resnet50();
  for (const int64_t ranks : {1, 8}) report.rows.push_back(scale_row(report.step, report.link, ranks));
  report.remarks = remarks_of(report.rows);
  for (const auto format : {tables::TableFormat::Text, tables::TableFormat::Markdown}) {
    const auto text = present(report).as(format);
    for (const auto* part : {"A model, not a measurement", "resnet50", "Scales up to 8", "102.2 MB", "0.21 %"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
  }
  const auto json = nlohmann::json::parse(present(report).as(tables::TableFormat::Json));
  EXPECT_EQ(json["kind"], "model");
  EXPECT_EQ(json["rows"][1]["ranks"], 8);
  std::istringstream csv(present(report).as(tables::TableFormat::Csv));
  std::string header;
  std::getline(csv, header);
  EXPECT_NE(header.find("spread_refreshes"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::lab::cost::scale_test
