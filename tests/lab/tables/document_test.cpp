#include "tables/document.h"

#include <gtest/gtest.h>

namespace sgdph::lab::tables::document_test {
namespace {

Document sample() {
  Document inner;
  inner.table("Figures", {{"a"}, {{"1"}}}, "cost");
  return Document()
      .title("All <of> it")
      .paragraph("One\ntwo_three", "small")
      .paragraph("")
      .table("Nothing", {{"a"}, {}})
      .part("A part", inner)
      .list({"*x*", "y"});
}

TEST(Document, AsTextKeepsLinesAndHasABlankOneBetweenItsParts) {
  EXPECT_EQ(
      sample().text(),
      "All <of> it\n\n"
      "One\ntwo_three\n\n"
      "A part\nFigures\na\n-\n1\n\n"
      "*x*\ny\n");
}

TEST(Document, AsMarkdownHasHeadingsOneDeeperInAPartAndTakesNoMarkFromText) {
  EXPECT_EQ(
      sample().markdown(),
      "# All \\<of\\> it\n\n"
      "One two\\_three\n\n"
      "## A part\n\n"
      "### Figures\n\n"
      "| a |\n|---|\n| 1 |\n\n"
      "- \\*x\\*\n- y\n");
}

TEST(Document, OnAPageTitlesOfTablesAreCaptionsAndTextIsEscaped) {
  const auto html = sample().html();
  EXPECT_EQ(html.find("<h2>All &lt;of&gt; it</h2>\n<p class=\"small\">One\ntwo_three</p>\n<h3>A part</h3>\n<div"), 0U)
      << html;
  EXPECT_NE(html.find("<caption>Figures</caption>"), std::string::npos) << html;
  EXPECT_NE(html.find("<ul>\n<li>*x*</li>\n<li>y</li>\n</ul>\n"), std::string::npos) << html;
}

TEST(Document, ACaptionOfATableWithoutTitleIsOnThePageAlone) {
  const auto document = Document().untitled_table("Results", {{"a"}, {{"1"}}});
  EXPECT_EQ(document.text(), "a\n-\n1\n");
  EXPECT_EQ(document.markdown(), "| a |\n|---|\n| 1 |\n");
  EXPECT_NE(document.html().find("<caption>Results</caption>"), std::string::npos);
}

TEST(Document, PicturesAreHeldByAPageAndLinkedFromMarkdown) {
  const auto document = Document().pictures({{"A [b]", "<svg/>", "img/a.svg"}, {"C", "<svg/>", ""}});
  EXPECT_EQ(document.text(), "");
  EXPECT_EQ(document.markdown(), "![A \\[b\\]](<img/a.svg>)\n");
  EXPECT_EQ(
      document.html(),
      "<img class=\"picture\" alt=\"A [b]\" src=\"data:image/svg+xml;base64,PHN2Zy8+\">\n"
      "<img class=\"picture\" alt=\"C\" src=\"data:image/svg+xml;base64,PHN2Zy8+\">\n");
}

TEST(Document, WhatIsFoldedIsLeftOutOfTextAndNothingIsNotFolded) {
  const auto document = Document().folded("More & more", Document().paragraph("x")).folded("None", Document());
  EXPECT_EQ(document.text(), "");
  EXPECT_EQ(document.markdown(), "<details><summary>More &amp; more</summary>\n\nx\n\n</details>\n");
  EXPECT_EQ(document.html(), "<details><summary>More &amp; more</summary>\n<p>x</p>\n</details>\n");
}

TEST(Presentation, HasAllFormatsByName) {
  const Presentation shown{Document().paragraph("a_b"), {{"a"}, {{"1"}}}, {{"a", "\xff"}}};
  const auto as = [&](const char* name) { return shown.as(table_formats().at(name)); };
  EXPECT_EQ(as("text"), "a_b\n");
  EXPECT_EQ(as("markdown"), "a\\_b\n");
  EXPECT_EQ(as("csv"), "a\n1\n");
  EXPECT_EQ(as("json"), "{\n  \"a\": \"\xef\xbf\xbd\"\n}\n");
}

}  // namespace
}  // namespace sgdph::lab::tables::document_test
