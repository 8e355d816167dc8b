#include "tables/table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::lab::tables::table_test {
namespace {

Table sample() {
  Table table{{"name", "figure"}, {{"a", "1.5"}, {"b|c", "12"}}};
  table.rows[1][1].strong = true;
  return table;
}

TEST(Table, TextHasColumnsOfEqualWidthAndAStarAtTheBest) {
  EXPECT_EQ(
      text_table(sample()),
      "name  figure\n"
      "------------\n"
      "a        1.5\n"
      "b|c     12 *\n");
}

TEST(Table, MarkdownHasTheBestBoldAndTakesNoMarkFromACell) {
  EXPECT_EQ(
      markdown_table(sample()),
      "| name | figure |\n"
      "|---|---:|\n"
      "| a    |    1.5 |\n"
      "| b\\|c | **12** |\n");
}

TEST(Table, CellsAreQuotedInCsvWhereNecessary) {
  EXPECT_EQ(csv_table({{"a", "b"}, {{"1,5", "say \"x\""}}}), "a,b\n\"1,5\",\"say \"\"x\"\"\"\n");
}

TEST(Table, AListIsToTheLeftWithNoBlanksAtTheEnds) {
  EXPECT_EQ(text_list({{}, {{"vgg11", "a network"}, {"x", ""}}}), "vgg11  a network\nx\n");
  EXPECT_EQ(text_list({{"NAME", "WHAT"}, {{"x", "y"}}}), "NAME  WHAT\nx     y\n");
}

TEST(Table, APageHasBarsAgainstTheLargestValueAndNoMarkupFromACell) {
  Table table{{"x", "<y>"}, {{"a&b", "2"}, {"c", "-"}, {"d", "4"}}};
  table.add_bars("<y>", {2, 0, 4});
  const auto html = html_table(table, "Of \"x\"", "cost");
  EXPECT_NE(html.find("<table class=\"cost\"><caption>Of &quot;x&quot;</caption>"), std::string::npos) << html;
  EXPECT_NE(html.find("<th scope=\"col\">&lt;y&gt;</th>"), std::string::npos) << html;
  EXPECT_NE(
      html.find("<th scope=\"row\">a&amp;b</th><td><span class=\"bar\" style=\"--part:0.500\">2</span></td>"),
      std::string::npos)
      << html;
  EXPECT_NE(html.find("<td>-</td>"), std::string::npos) << html;
}

TEST(FigureText, IsADashForWhatIsNotKnown) {
  EXPECT_EQ(ratio_text(1.333), "1.33x");
  EXPECT_EQ(ratio_text(0), "-");
  EXPECT_EQ(ratio_text(NAN), "-");
  EXPECT_EQ(decimals_text(0.825), "0.82");
  EXPECT_EQ(decimals_text(NAN), "-");
  EXPECT_EQ(percent_text(2. / 3), "67 %");
  EXPECT_EQ(percent_text(NAN), "-");
  EXPECT_EQ(difference_text(1.25), "+1.25");
  EXPECT_EQ(difference_text(-1.25), "-1.25");
  EXPECT_EQ(difference_text(std::nullopt), "-");
}

TEST(FigureText, OfAMeanHasItsDeviationIfThereAreSeveral) {
  EXPECT_EQ(spread_text(statistic({70, 72})), "71.00 +- 1.41");
  EXPECT_EQ(spread_text(statistic({70})), "70.00");
  EXPECT_EQ(spread_text(statistic({})), "-");
  EXPECT_EQ(spread_text(78.51, 0.2), "78.51 +- 0.20");
  EXPECT_EQ(spread_text(78.51, std::nullopt), "78.51");
}

TEST(FigureText, ForProgramsHasEveryDigitOrNothing) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1. / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(std::nullopt), "");
  EXPECT_EQ(number_text(NAN), "");
}

TEST(FigureText, OfRunsNamesThoseThatDiverged) {
  EXPECT_EQ(runs_text(2, 3, 0), "2/3");
  EXPECT_EQ(runs_text(2, 3, 1), "2/3, 1 diverged");
}

}  // namespace
}  // namespace sgdph::lab::tables::table_test
