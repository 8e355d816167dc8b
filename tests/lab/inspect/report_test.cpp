#include "inspect/report.h"
#include "inspect/estimates.h"
#include "inspect/picture.h"
#include "support/svg.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <sstream>

namespace sgdph::lab::inspect::report_test {
namespace {

using test::expect_well_formed;

HessianBlock block_of(const std::string& name, const at::Tensor& rows, std::vector<int64_t> channels = {}) {
  HessianBlock hessian;
  hessian.block = {name, "gain", torch::zeros({rows.size(1)})};
  hessian.rows = rows.to(torch::kFloat64);
  if (channels.empty()) {
    for (int64_t i = 0; i < rows.size(0); ++i) channels.push_back(i);
  }
  hessian.channels = std::move(channels);
  return hessian;
}

HessianBlock coupled() {
  return block_of("bn1.weight", torch::tensor({{2., 1., -4.}, {1., -3., 0.}, {-4., 0., 6.}}));
}

std::vector<HeldEstimate> held_of(const HessianBlock& hessian) {
  const auto row_sum = hessian.row_sum();
  return {{"ones", row_sum, row_sum.abs()}, {"rademacher", hessian.diagonal(), hessian.diagonal().abs()}};
}

records::InspectReport report_of(const std::vector<HessianBlock>& hessians) {
  records::InspectReport report;
  report.model = "resnet8";
  report.norm = "batch";
  report.dataset = "fashion-mnist";
  report.source = "runs/<script>";
  report.precision = "float32";
  report.rule = "reference";
  for (const auto& hessian : hessians) report.rows.push_back(block_row(hessian, held_of(hessian)));
  report.planned = static_cast<int64_t>(hessians.size());
  report.verdict = verdict_of(report.rows);
  return report;
}

TEST(BlockFigures, AreThoseOfTheMatrix) {
  auto hessian = coupled();
  hessian.optimizer_row_sum = hessian.row_sum() * 1.5;
  const auto row = block_row(hessian, held_of(hessian));
  EXPECT_DOUBLE_EQ(row.off_diagonal, std::sqrt(34. / 49.));
  // Row sums -1, -2, 2 beside 2, -3, 6.
  EXPECT_NEAR(row.row_sum.same_sign, 2. / 3, 1e-12);
  EXPECT_DOUBLE_EQ(row.row_sum.median_ratio, 0.5);
  EXPECT_DOUBLE_EQ(row.row_sum.cosine, (-2. + 6 + 12) / (3 * 7));
  EXPECT_DOUBLE_EQ(row.row_sum.error, std::sqrt(9. + 1 + 16) / 7);
  EXPECT_DOUBLE_EQ(row.product_error, 0.5);
  const auto eigenvalues = std::get<0>(torch::linalg_eigh(hessian.rows));
  EXPECT_NEAR(row.smallest_eigenvalue, eigenvalues[0].item<double>(), 1e-12);
  EXPECT_NEAR(row.largest_eigenvalue, eigenvalues[2].item<double>(), 1e-12);
  EXPECT_EQ(row.asymmetry, 0);
  EXPECT_DOUBLE_EQ(row.probes[1].estimate.error, 0);
  EXPECT_DOUBLE_EQ(row.probes[0].divisor.same_sign, 1);
}

TEST(BlockFigures, OfSomeRowsAreOfTheseRows) {
  const auto whole = coupled();
  const auto row = block_row(block_of("x", whole.rows.index_select(0, torch::tensor({0, 2})), {0, 2}), {});
  EXPECT_EQ(row.channels, 3);
  EXPECT_EQ(row.measured, 2);
  EXPECT_EQ(row.diagonal, (std::vector<double>{2, 6}));
  EXPECT_EQ(row.row_sums, (std::vector<double>{-1, 2}));
  EXPECT_DOUBLE_EQ(row.off_diagonal, std::sqrt(33. / 40.));
  EXPECT_NEAR(row.largest_eigenvalue, 4 + std::sqrt(20.), 1e-12);
}

TEST(BlockFigures, SurviveZeroBlocksDeadChannelsAndValuesThatAreNotFinite) {
  const auto zero = block_row(block_of("zero", torch::zeros({2, 2})), {});
  EXPECT_TRUE(std::isnan(zero.off_diagonal));
  EXPECT_TRUE(std::isnan(zero.row_sum.same_sign));
  const auto dead = block_row(block_of("dead", torch::tensor({{0., 0.}, {0., 4.}})), {});
  EXPECT_EQ(dead.row_sum.same_sign, 1);
  EXPECT_EQ(dead.row_sum.median_ratio, 1);
  const auto lost = block_row(block_of("lost", torch::full({2, 2}, NAN)), {});
  EXPECT_EQ(lost.note, "not finite");
}

TEST(Verdict, SaysWhatTheFiguresShowAndNoMore) {
  EXPECT_NE(report_of({coupled()}).verdict.text.find("does not hold: 1 of 1"), std::string::npos);
  const auto diagonal = block_of("bn2.weight", torch::tensor({{2., 0.01}, {0.01, 3.}}));
  const auto holds = report_of({diagonal}).verdict.text;
  EXPECT_NE(holds.find("holds here to 0.0039"), std::string::npos) << holds;
  EXPECT_EQ(holds.find("does not hold"), std::string::npos) << holds;
  EXPECT_NE(report_of({diagonal, coupled()}).verdict.text.find("1 of 2"), std::string::npos);
  auto invariant = block_of("fc.bias", torch::tensor({{1., -1.}, {-1., 1.}}));
  invariant.shift_invariant = true;
  const auto neither = report_of({invariant, block_of("one", torch::ones({1, 1}))}).verdict;
  EXPECT_EQ(neither.blocks, 0);
  EXPECT_NE(neither.text.find("No block here can tell"), std::string::npos);
  EXPECT_NE(neither.text.find("first-order: fc.bias."), std::string::npos);
}

TEST(Verdict, OfSomeRowsSaysThatItIsOfTheseRows) {
  const auto rows = coupled().rows.index_select(0, torch::tensor({0, 2}));
  const auto part = block_of("bn1.weight", rows, {0, 2});
  const auto text = report_of({part}).verdict.text;
  EXPECT_NE(text.find("the Frobenius norm of its diagonal, of the rows measured."), std::string::npos) << text;
  EXPECT_NE(text.find("of a block's measured channels"), std::string::npos) << text;
  const auto diagonal = block_of("bn2.weight", torch::tensor({{2., 0.01, 0.}}), {0});
  const auto holds = report_of({diagonal, block_of("bn3.weight", torch::eye(2))}).verdict.text;
  EXPECT_NE(holds.find("of the rows measured of 2 blocks."), std::string::npos) << holds;
  EXPECT_EQ(report_of({coupled()}).verdict.text.find("measured"), std::string::npos);
}

TEST(InspectReport, ARemarkNamesShiftInvarianceAndTheRowsMeasured) {
  auto part = block_of("fc.bias", torch::tensor({{1., -1.}}), {0});
  part.shift_invariant = true;
  EXPECT_NE(
      present(report_of({part})).as(tables::TableFormat::Text).find("shift-invariant, 1 rows"), std::string::npos);
  auto whole = block_of("fc.bias", torch::tensor({{1., -1.}, {-1., 1.}}));
  whole.shift_invariant = true;
  EXPECT_EQ(present(report_of({whole})).as(tables::TableFormat::Text).find("shift-invariant,"), std::string::npos);
}

TEST(InspectReport, TellsWhetherSpreadPaysWhereShardsWereCompared) {
  auto report = report_of({coupled()});
  EXPECT_EQ(present(report).as(tables::TableFormat::Text).find("over shards"), std::string::npos);
  report.batch_size = 32;
  report.shards = 4;
  // Signs and shards alike: (1 + 1) / (8 + 1) of the variance.
  report.rows[0].over_shards = report.rows[0].off_diagonal;
  const auto text = present(report).as(tables::TableFormat::Text);
  for (const auto* part : {"over shards", "4 shards of 8 images", "With 8 ranks", "has 0.47 of the noise"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(present(report).as(tables::TableFormat::Csv).find("over_shards"), std::string::npos);
  // So much between shards that only the number of estimates tells.
  report.rows[0].over_shards = 1e6;
  EXPECT_NE(present(report).as(tables::TableFormat::Text).find("has 1.00 of the noise"), std::string::npos);
}

TEST(InspectReport, IsWrittenInEveryFormat) {
  const auto report = report_of({coupled(), block_of("zero", torch::zeros({2, 2}))});
  for (const auto format : {tables::TableFormat::Text, tables::TableFormat::Markdown}) {
    const auto text = present(report).as(format);
    for (const auto* part : {"bn1.weight", "0.83", "67 %", "does not hold", "rademacher"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
    EXPECT_EQ(text.find("nan"), std::string::npos);
  }
  const auto json = nlohmann::json::parse(present(report).as(tables::TableFormat::Json));
  EXPECT_DOUBLE_EQ(json["rows"][0]["diagonal"][2], 6);
  EXPECT_TRUE(json["rows"][1]["off_diagonal"].is_null());
  EXPECT_EQ(json["verdict"]["not_diagonal"], 1);
  EXPECT_EQ(json["verdict"]["text"], report.verdict.text);
  std::istringstream csv(present(report).as(tables::TableFormat::Csv));
  std::vector<int64_t> commas;
  for (std::string line; std::getline(csv, line);) commas.push_back(std::count(line.begin(), line.end(), ','));
  EXPECT_EQ(commas, (std::vector<int64_t>(3, commas.front())));
}

TEST(InspectReport, OfNothingIsStillWritten) {
  for (const auto& [name, format] : tables::table_formats())
    EXPECT_FALSE(present(records::InspectReport()).as(format).empty()) << name;
}

TEST(BlockPicture, IsWellFormedAndHasSignsScaleAndBothStrips) {
  const auto hessian = coupled();
  const BlockView view(hessian, block_row(hessian, {}));
  const auto svg = block_picture(view, "resnet8 on <data> & more");
  expect_well_formed(svg);
  for (const auto* part :
       {"class=\"plus\"", "class=\"minus\"", ">diagonal<", ">row sum<", "1 = 6, the largest",
        "off-diagonal / diagonal 0.83", "on 67 %", "prefers-color-scheme:dark"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  // Five elements, a symmetric pair twice, three diagonal and three row sums; those of zero are not drawn.
  size_t cells = 0;
  for (auto at = svg.find("v28h"); at != std::string::npos; at = svg.find("v28h", at + 1)) ++cells;
  EXPECT_EQ(cells, 7U + 3 + 3);
}

TEST(BlockPicture, OfZeroOneOrManyChannelsIsWellFormed) {
  for (const int64_t channels : {1, 2, 20}) {
    for (const double value : {0., 1e-30}) {
      const auto hessian = block_of("x", torch::full({channels, channels}, value));
      expect_well_formed(block_picture(BlockView(hessian, block_row(hessian, {})), "here"));
    }
  }
  const auto many = block_of("x", torch::eye(200));
  const BlockView view(many, block_row(many, {}));
  EXPECT_EQ(view.channels.size(), 64U);
  EXPECT_NE(block_picture(view, "here").find("64 of 200 channels drawn"), std::string::npos);
}

TEST(BlockPicture, OfABlockThatIsNotFiniteSaysSoAndDrawsNothing) {
  auto hessian = block_of("lost", torch::tensor({{static_cast<double>(NAN), 1.}, {1., 2.}}));
  hessian.shift_invariant = true;
  const BlockView view(hessian, block_row(hessian, {}));
  const auto svg = block_picture(view, "here");
  expect_well_formed(svg);
  EXPECT_NE(svg.find(">not drawn: not finite<"), std::string::npos) << svg;
  for (const auto* part : {"<path", "the largest", "the diagonal is zero", "channels drawn"}) {
    EXPECT_EQ(svg.find(part), std::string::npos) << part;
  }
  const auto zero = block_of("zero", torch::zeros({2, 2}));
  EXPECT_EQ(typical_view({view, BlockView(zero, block_row(zero, {}))}), 1U);
  EXPECT_EQ(typical_view({view}), 0U);
}

TEST(BlockPicture, IsOfTheBlockWithTheMedianRatio) {
  std::vector<BlockView> views;
  for (const double coupling : {9., 1., 0., 4., 2.}) {
    auto hessian = block_of("x", torch::tensor({{1., coupling}, {coupling, 1.}}));
    views.emplace_back(hessian, block_row(hessian, {}));
  }
  EXPECT_EQ(typical_view(views), 4U);
  views[0].row.shift_invariant = true;
  views[3].row.shift_invariant = true;
  EXPECT_EQ(typical_view(views), 1U);
  EXPECT_EQ(typical_view({}), 0U);
}

}  // namespace
}  // namespace sgdph::lab::inspect::report_test
