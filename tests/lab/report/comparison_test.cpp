#include "report/comparison.h"
#include "base/files.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/tables.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::report::task_test {
namespace {

using test::contains;
using test::TempFolder;
using test::write_run;

std::vector<std::string> labels_of(const Comparison& task) {
  std::vector<std::string> labels;
  for (const auto& series : task.series) labels.push_back(series.label);
  return labels;
}

TEST(Comparisons, SeriesAreNamedByWhatDiffersAndSeedsAndWorkersDoNot) {
  const TempFolder folder;
  write_run(folder / "a", "sgd-ph", 1, 70, 4, {{"lr", 0.1}, {"probe", "ones"}, {"workers", 1}});
  write_run(folder / "b", "sgd-ph", 2, 71, 4, {{"lr", 0.1}, {"probe", "ones"}, {"workers", 2}});
  write_run(folder / "c", "sgd-ph", 1, 72, 4, {{"lr", 0.01}, {"probe", "ones"}});
  write_run(folder / "d", "sgdm", 1, 60, 4, {{"lr", 0.5}});
  write_run(folder / "e", "sgdm", 1, 50, 4, {{"model", "vgg11"}});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.size(), 2U);
  EXPECT_EQ(labels_of(comparisons[0]), (std::vector<std::string>{"SGDM", "SGD-PH, lr 0.01", "SGD-PH, lr 0.1"}));
  EXPECT_EQ(comparisons[0].series[2].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(comparisons[0].series[2].summary.top1.mean, 70.5);
  EXPECT_EQ(comparisons[1].title, "cifar10, vgg11, 4 epochs");
  EXPECT_EQ(comparisons[1].slug, "cifar10-vgg11-4-epochs");
  EXPECT_EQ(comparisons[0].series[0].style.colour, comparisons[1].series[0].style.colour);
  EXPECT_NE(comparisons[0].series[1].style.colour, comparisons[0].series[2].style.colour);
}

TEST(Comparisons, OfManySeriesWhatMostShareIsNotSaid) {
  const TempFolder folder;
  write_run(folder / "a", "sgd-ph", 1, 70, 4, {{"lr", 0.1}, {"probe", "ones"}});
  write_run(folder / "b", "sgd-ph", 1, 71, 4, {{"lr", 0.1}, {"probe", "hadamard"}});
  write_run(folder / "c", "sgd-ph", 1, 72, 4, {{"lr", 0.01}, {"probe", "ones"}, {"clip", 1}});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  EXPECT_EQ(
      labels_of(comparisons.at(0)),
      (std::vector<std::string>{"SGD-PH, clip 1, lr 0.01", "SGD-PH, probe hadamard", "SGD-PH"}));
}

TEST(Comparisons, OfAnExperimentAreItsTablesAndOtherRunsComeAfter) {
  const TempFolder folder;
  write_run(folder / "a", "sgd-ph", 1, 70);
  write_run(folder / "b", "sgd-ph", 2, 72);
  write_run(folder / "c", "sgdm", 1, 60);
  write_run(folder / "d", "sgdm", 2, 50);
  const auto cell = [](const char* row, const std::vector<std::string>& runs, const nlohmann::json& paper) {
    return nlohmann::json{{"row", row},      {"runs", runs}, {"paper", paper},
                          {"ours", nullptr}, {"planned", 3}, {"settings", {{"opt", "sgd-ph"}}}};
  };
  const nlohmann::json paper{{"value", 77.5}, {"std", nullptr}};
  nlohmann::json experiment{
      {"experiment", "mine"},
      {"title", "Mine"},
      {"paper", "Table 9"},
      {"scale", "desk"},
      {"quantity", "test accuracy %"},
      {"reductions", {"epochs 8 -> 4"}},
      {"why", "Small."},
      {"notes", {"one run"}},
      {"groups",
       {{{"label", "first"}, {"cells", {2, 0, 3}}, {"words", ""}},
        {{"label", "second"}, {"cells", {1}}, {"words", ""}}}},
      {"cells",
       {cell("Ours", {"a", "b", "gone"}, paper), cell("None here", {"gone"}, paper), cell("<Rival>", {"c"}, nullptr),
        cell("To be run", {}, paper)}}};
  write_file_atomically(folder / "mine.json", {experiment.dump()});
  write_file_atomically(folder / "other.json", {"[1, 2]"});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.size(), 2U);  // the second table has no run
  EXPECT_EQ(comparisons[0].title, "Mine - first");
  EXPECT_EQ(comparisons[0].note, "Table 9, desk scale. Reductions: epochs 8 -> 4. Small. Notes: one run.");
  EXPECT_EQ(labels_of(comparisons[0]), (std::vector<std::string>{"<Rival>", "Ours", "To be run"}));
  EXPECT_EQ(comparisons[0].series[1].runs.size(), 2U);
  EXPECT_DOUBLE_EQ(comparisons[0].series[1].reference.value().value, 77.5);
  EXPECT_FALSE(comparisons[0].series[0].reference);
  EXPECT_EQ(comparisons[1].title, "cifar10, resnet8, 4 epochs");
  ASSERT_EQ(comparisons[1].series.size(), 1U);
  EXPECT_EQ(comparisons[1].series[0].runs.front()->seed, 2);
  // What is still to be run has a row, and no curve; what should be there and is not is said.
  const auto results = result_table(comparisons[0]);
  EXPECT_EQ(results.rows[1].back().text, "2/3");
  EXPECT_EQ(results.rows[2].back().text, "0/3");
  EXPECT_EQ(results.rows[2][1].text, "-");
  EXPECT_EQ(results.rows[2][2].text, "77.50");
  EXPECT_EQ(differing_settings(comparisons[0]).columns.size(), 3U);
  EXPECT_FALSE(contains(page_data(comparisons), "To be run"));
  EXPECT_FALSE(contains(curve_figure(comparisons[0], 0), "To be run"));
  EXPECT_EQ(
      found.notices, (std::vector<std::string>{
                         "Missing: 1 of the 4 runs of: Mine - first", "Missing: 1 of the 1 runs of: Mine - second"}));

  experiment.erase("why");
  write_file_atomically(folder / "mine.json", {experiment.dump()});
  found = collect({folder.path()});
  ASSERT_EQ(found.notices.size(), 1U);
  EXPECT_TRUE(contains(found.notices[0], "mine.json: not an experiment")) << found.notices[0];
}

TEST(Notes, AreParagraphsListsAndHeadingsOfEscapedText) {
  EXPECT_EQ(
      notes_html("## Found\nOne line\nand <b>another</b>.\n\n- first\n  goes on\n- second\n\nEnd.\n"),
      "<h3>Found</h3>\n<p>One line and &lt;b&gt;another&lt;/b&gt;.</p>\n<ul>\n<li>first goes on</li>\n<li>second</li>\n"
      "</ul>\n<p>End.</p>\n");
  EXPECT_EQ(notes_html(""), "");
  EXPECT_EQ(
      notes_html("Run `a < b` and `c`; one ` alone"),
      "<p>Run <code>a &lt; b</code> and <code>c</code>; one ` alone</p>\n");
  EXPECT_EQ(
      notes_html("**Found: <b>** 2**3, `**kept**`"),
      "<p><strong>Found: &lt;b&gt;</strong> 2**3, <code>**kept**</code></p>\n");
}

TEST(Notes, MarksStandInsideOthersAndBelowTheHeadingsOfThePage) {
  EXPECT_EQ(notes_html("**a `b` c**"), "<p><strong>a <code>b</code> c</strong></p>\n");
  EXPECT_EQ(
      notes_html("# Top\n\n- a\n  - *b*\n"),
      "<h3>Top</h3>\n<ul>\n<li>a\n<ul>\n<li><em>b</em></li>\n</ul>\n</li>\n</ul>\n");
}

TEST(Notes, TakeNothingFromOutsideAndRunNothing) {
  EXPECT_EQ(notes_html("<script>alert(1)</script>\n\nx"), "<p>&lt;script&gt;alert(1)&lt;/script&gt;\n</p>\n<p>x</p>\n");
  EXPECT_EQ(
      notes_html("![a *b*](http://c/d.png) <img src=x onerror=y>"),
      "<p><a href=\"http://c/d.png\">a <em>b</em></a> &lt;img src=x onerror=y&gt;</p>\n");
  EXPECT_EQ(notes_html("[a](javascript:b)"), "<p><a href=\"\">a</a></p>\n");
}

TEST(Comparisons, AFolderGivenTwiceAndASeedRunTwiceCountOnce) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70);
  write_run(folder / "b", "sgdm", 1, 70);
  auto found = collect({folder.path(), folder / "a"});
  EXPECT_EQ(found.runs.size(), 2U);
  const auto comparisons = make_comparisons(found);
  EXPECT_EQ(comparisons[0].series[0].runs.size(), 1U);
  ASSERT_EQ(found.notices.size(), 1U);
  EXPECT_TRUE(contains(found.notices[0], "same settings and seed")) << found.notices[0];
}

TEST(Comparisons, OfRunsOfTheSameSeedTheOneThatGotFurthestIsTaken) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 10, 4);
  auto log = read_file(folder / "a" / "log.jsonl");
  write_file_atomically(folder / "a" / "log.jsonl", {log.substr(0, log.rfind('\n', log.size() - 2) + 1)});  // no end
  write_run(folder / "b", "sgdm", 1, 70, 4);
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.at(0).series.at(0).runs.size(), 1U);
  EXPECT_DOUBLE_EQ(comparisons[0].series[0].summary.top1.mean, 70);
  ASSERT_EQ(found.notices.size(), 1U);
  EXPECT_TRUE(contains(found.notices[0], "/a has the same settings and seed as ")) << found.notices[0];
}

TEST(Collection, ATableWithoutItsRunsIsNothing) {
  const TempFolder folder;
  write_file_atomically(
      folder / "mine.json",
      {R"({"experiment": "mine", "title": "Mine", "paper": "", "scale": "desk", "quantity": "test accuracy %",
           "reductions": [], "why": "", "notes": [], "groups": [], "cells": []})"});
  EXPECT_TRUE(contains(test::error_of([&] { collect({folder.path()}); }), "no run, cost.json or inspect.json"));
}

TEST(Collection, SomebodysOwnJsonIsPassedOverAndACutRecordIsNot) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70);
  std::filesystem::create_directories(folder / "cut");
  write_file_atomically(folder / "cut" / "log.jsonl", {R"({"type": "hea)"});
  write_file_atomically(folder / "own.json", {"{ // with a remark"});
  write_file_atomically(folder / "mine.json", {"{\n  \"axes\": ["});
  const auto found = collect({folder.path()});
  ASSERT_EQ(found.notices.size(), 2U);
  EXPECT_TRUE(contains(found.notices[0], "cut")) << found.notices[0];
  EXPECT_TRUE(contains(found.notices[1], "mine.json: not JSON, or cut off")) << found.notices[1];
}

TEST(Comparisons, WithTheSameNameAndOtherSettingsSayMore) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70, 4, {{"form", "cifar"}});
  write_run(folder / "b", "sgdm", 1, 70, 4, {{"form", "imagenet"}});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.size(), 2U);
  EXPECT_NE(comparisons[0].title, comparisons[1].title);
  EXPECT_NE(comparisons[0].slug, comparisons[1].slug);
}

TEST(PageData, IsJsonThatCannotEndItsElement) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70, 4, {{"rule", "</script><!--&"}});
  write_run(folder / "b", "sgdm", 1, 70, 4, {{"rule", "x"}});
  auto found = collect({folder.path()});
  const auto text = page_data(make_comparisons(found));
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["tasks"][0]["series"][0]["label"], "SGDM, rule </script><!--&");
  EXPECT_EQ(json["tasks"][0]["series"][0]["mean"][0], nlohmann::json({67, 68, 69, 70}));
}

TEST(PageData, StaysSmallHoweverManyEpochs) {
  const TempFolder folder;
  for (int i = 0; i < 3; ++i) write_run(folder / std::to_string(i), "sgdm", 1, 70, 2000, {{"lr", 0.1 * (i + 1)}});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  EXPECT_LE(comparisons[0].series[0].curves.epochs.size(), 500U);
  EXPECT_LT(page_data(comparisons).size(), 200000U);
}

}  // namespace
}  // namespace sgdph::lab::report::task_test
