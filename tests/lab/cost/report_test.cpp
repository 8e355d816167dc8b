#include "cost/report.h"
#include "cost/engine.h"
#include "cost/measurement.h"
#include "support/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sgdph::lab::cost::report_test {
namespace {

using test::expect_well_formed;

EngineTimes times_of(const std::string& name, double ratio) {
  EngineTimes times;
  times.engine = name;
  if (engine(name).settings.opt == "sgd-ph") times.blocks = {"bn1.weight", "bn1.bias"};
  for (int64_t i = 0; i < 4; ++i) times.steps.push_back({i % 2, ratio * 0.5, 0.5});
  return times;
}

EngineMemory memory_of(const std::string& name, int64_t first, int64_t last) {
  return {name, {{0, first, 2 * first}, {1, last, 2 * last}}, true};
}

records::CostReport sample_report() {
  records::CostReport report;
  report.form = "cifar";
  report.cpu = "a <fast> CPU & more";
  report.threads = 2;
  for (const auto* model : {"resnet18", "vgg11"}) {
    for (const int64_t batch_size : {8, 64}) {
      const Workload workload{model, "cifar", batch_size, 1};
      const auto sgdm = memory_of("sgdm", 100, 100);
      report.rows.push_back(make_row(workload, engine("sgdm"), times_of("sgdm", 1), sgdm, sgdm));
      report.rows.push_back(
          make_row(workload, engine("sgd-ph"), times_of("sgd-ph", 1.4), memory_of("sgd-ph", 150, 110), sgdm));
      report.rows.push_back(make_row(workload, engine("published"), times_of("published", 6), {}, sgdm));
      records::CostRow lost;
      lost.model = model;
      lost.batch_size = batch_size;
      lost.engine = "adahessian";
      lost.note = "ended by signal 9";
      report.rows.push_back(lost);
      report.fast_to_stock.push_back({model, batch_size, tables::median_figure({0.9, 0.91, 0.92})});
    }
  }
  return report;
}

TEST(CostRow, HoldsRatiosAndMemoryRelativeToSgdm) {
  const auto row = sample_report().rows[1];
  EXPECT_DOUBLE_EQ(row.ratio.value, 1.4);
  EXPECT_DOUBLE_EQ(row.seconds.value, 0.7);
  EXPECT_DOUBLE_EQ(row.held.relative_mean, 1.3);
  EXPECT_DOUBLE_EQ(row.held.relative_worst, 1.5);
  EXPECT_DOUBLE_EQ(row.resident.worst, 300);
  ASSERT_EQ(row.positions.size(), 2U);
  EXPECT_EQ(row.positions[1].block, "bn1.bias");
  EXPECT_EQ(row.positions[1].depth, 2);
  EXPECT_EQ(row.positions[1].steps, 2);
  EXPECT_DOUBLE_EQ(row.positions[1].held, 1.1);
}

TEST(CostReport, ComesBackFromItsJson) {
  const auto text = present(sample_report()).as(tables::TableFormat::Json);
  const auto again = nlohmann::json::parse(text).get<records::CostReport>();
  EXPECT_EQ(present(again).as(tables::TableFormat::Json), text);
  EXPECT_EQ(again.rows.size(), sample_report().rows.size());
}

TEST(CostReport, TablesHaveEveryWorkloadAndSayWhyFiguresAreMissing) {
  const auto text = present(sample_report()).as(tables::TableFormat::Text);
  for (const auto* part : {"vgg11 (cifar form), batch 64", "1.40x", "1.30x (1.50x)", "ended by signal 9", "0.91"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("bn1.bias"), std::string::npos);
  EXPECT_NE(present(sample_report(), true).as(tables::TableFormat::Markdown).find("| bn1.bias"), std::string::npos);
  auto unknown = sample_report();
  unknown.resident_known = false;
  EXPECT_NE(present(unknown).as(tables::TableFormat::Text).find("RSS is not given"), std::string::npos);
}

TEST(CostPicture, IsWellFormedWithALineForEachEngineAndNetwork) {
  const auto svg = cost_picture(sample_report());
  expect_well_formed(svg);
  size_t lines = 0;
  for (auto at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 4U);
  for (const auto* part : {">resnet18<", ">vgg11<", ">64<", "SGD-PH, published way", "prefers-color-scheme:dark"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST(CostPicture, SurvivesOneBatchSizeNothingAtAllAndFiguresThatAreNotFinite) {
  auto report = sample_report();
  report.rows.resize(2);
  expect_well_formed(cost_picture(report));
  report.rows[1].ratio.value = std::numeric_limits<double>::quiet_NaN();
  expect_well_formed(cost_picture(report));
  expect_well_formed(cost_picture({}));
}

}  // namespace
}  // namespace sgdph::lab::cost::report_test
