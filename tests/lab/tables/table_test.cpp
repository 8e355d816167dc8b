#include "tables/table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sgdph::lab::tables::table_test
