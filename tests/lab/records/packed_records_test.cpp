#include "records/packed_records.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <functional>

namespace sgdph::lab::records::packed_records_test {
namespace {

using nlohmann::json;
using test::contains;
using test::error_of;

json header(const json& settings) {
  return {{"type", "header"}, {"cpu", "a CPU"}, {"seed", settings.at("seed")}, {"settings", settings}};
}

json epoch(int number, double top1) {
  return {
      {"type", "epoch"},
      {"epoch", number},
      {"test_top1", top1},
      {"skipped", 0},
      {"cost", {{"train_seconds", 0.1 * number}, {"peak", 5}}}};
}

json end() {
  return {{"type", "end"}, {"status", "finished"}, {"cost", {{"train_seconds", 1.5}}}};
}

PackedRecords two_runs() {
  return {
      {{"a-seed1", {header({{"seed", 1}, {"lr", 0.1}, {"opt", "sgdm"}}), epoch(1, 10), epoch(2, 20.5), end()}},
       {"b/c-seed2", {header({{"seed", 2}, {"lr", 0.1}, {"opt", "adam"}}), epoch(1, 1.0 / 3)}}},
      {{"cost/cost.json", R"({"z": 1, "a": 1.0})"}, {"inspect.svg", "<svg>\n\"x\"</svg>"}}};
}

std::string text_of(const LoggedRun& run) {
  std::string text;
  for (const auto& line : run.lines) text += line.dump() + "\n";
  return text;
}

void expect_same_after_packing(const std::vector<json>& lines) {
  const LoggedRun run{"run", lines};
  const auto back = unpack_records(pack_records({{run}, {}}), "x.jsonl");
  ASSERT_EQ(back.runs.size(), 1U);
  EXPECT_EQ(text_of(back.runs[0]), text_of(run));
}

/// The text of two runs with its line (from 1) changed.
std::string with_line(size_t number, const std::function<void(json&)>& change) {
  const auto text = pack_records(two_runs());
  std::string changed;
  size_t at = 0;
  for (size_t from = 0; from < text.size();) {
    const auto to = text.find('\n', from);
    auto line = json::parse(text.substr(from, to - from));
    if (++at == number) change(line);
    changed += line.dump() + "\n";
    from = to + 1;
  }
  return changed;
}

std::string error_in(const std::string& text) {
  return error_of([&] { unpack_records(text, "x.jsonl"); });
}

TEST(PackedRecords, LogsComeBackToTheLetterAndFilesWithTheirOrder) {
  const auto given = two_runs();
  const auto back = unpack_records(pack_records(given), "x.jsonl");
  ASSERT_EQ(back.runs.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.runs[i].name, given.runs[i].name);
    EXPECT_EQ(text_of(back.runs[i]), text_of(given.runs[i]));
  }
  ASSERT_EQ(back.files.size(), 2U);
  EXPECT_EQ(back.files[0].name, "cost/cost.json");
  EXPECT_EQ(back.files[0].text, R"({"z":1,"a":1.0})");
  EXPECT_EQ(back.files[1].text, given.files[1].text);
}

TEST(PackedRecords, WhatAllRunsShareStandsOnceAndEpochsStandInColumns) {
  const auto text = pack_records(two_runs());
  EXPECT_EQ(text.find("a CPU"), text.rfind("a CPU"));
  EXPECT_EQ(text.find("\"lr\""), text.rfind("\"lr\""));
  EXPECT_TRUE(contains(text, R"("test_top1":[10.0,20.5])")) << text;
  EXPECT_TRUE(contains(text, R"("peak":5,)")) << text;  // the same in all epochs
}

TEST(PackedRecords, NumbersOfOneValueAndTwoKindsStayApart) {
  auto first = epoch(1, 10);
  auto second = epoch(2, 10);
  first["skipped"] = 1;
  second["skipped"] = 1.0;
  expect_same_after_packing({header({{"seed", 1}}), first, second, end()});
}

TEST(PackedRecords, LogsOfAnyFormAreKept) {
  auto other = epoch(2, 20);
  other.erase("skipped");
  auto lists = epoch(1, 10);
  lists["list"] = {1, 2};
  auto empty = epoch(1, 10);
  empty["cost"] = json::object();
  const auto first = header({{"seed", 1}});
  expect_same_after_packing({first});
  expect_same_after_packing({first, end()});
  expect_same_after_packing({first, epoch(1, 10), other, end()});
  expect_same_after_packing({first, lists, lists});
  expect_same_after_packing({first, empty, empty, end()});
  expect_same_after_packing({first, epoch(1, 10), empty});
  expect_same_after_packing({first, epoch(1, 10), epoch(1, 10), end()});
  expect_same_after_packing({first, end(), epoch(1, 10), end()});
  expect_same_after_packing({epoch(1, 10), first});
  expect_same_after_packing({{{"type", "header"}}, epoch(1, 10)});
  expect_same_after_packing({{{"kind", 1}}});
  expect_same_after_packing({1, "x"});
  expect_same_after_packing({});
}

TEST(PackedRecords, AFileThatIsCutOffIsNamedWithItsLine) {
  const auto text = pack_records(two_runs());
  EXPECT_TRUE(contains(error_in(text.substr(0, text.size() - 1)), "x.jsonl:5: cut off"));
  EXPECT_TRUE(contains(error_in(text.substr(0, 10)), "x.jsonl:1: cut off"));
  EXPECT_TRUE(contains(error_in(""), "x.jsonl:1: cut off"));
  const auto last = text.rfind('\n', text.size() - 2);
  EXPECT_TRUE(contains(error_in(text.substr(0, last + 1)), "x.jsonl:4: the last line of 5"));
  EXPECT_TRUE(contains(error_in(text + "{}\n"), "x.jsonl:5: more than the 5 lines"));
}

TEST(PackedRecords, AnotherVersionAndAnotherKindAreNamed) {
  const auto newer = with_line(1, [](json& line) { line["sgdph_records"] = 2; });
  EXPECT_TRUE(contains(error_in(newer), "x.jsonl:1: packed records of version 2; this program reads version 1"));
  EXPECT_TRUE(contains(error_in("{\"type\":\"header\"}\n"), "x.jsonl:1: not records packed by"));
  EXPECT_TRUE(contains(error_in("rubbish\n"), "x.jsonl:1: damaged"));
}

TEST(PackedRecords, DamageIsNamedWithItsLine) {
  const auto no_settings = with_line(3, [](json& line) { line.erase("settings"); });
  EXPECT_TRUE(contains(error_in(no_settings), "x.jsonl:3: damaged")) << error_in(no_settings);
  const auto short_column = with_line(2, [](json& line) { line["epochs"] = 3; });
  EXPECT_TRUE(contains(error_in(short_column), "x.jsonl:2: damaged: a column of 2 figures for 3 epochs"));
  const auto endless = with_line(2, [](json& line) { line["epochs"] = 1000000000000; });
  EXPECT_TRUE(contains(error_in(endless), "x.jsonl:2: damaged: 1000000000000 epochs")) << error_in(endless);
  const auto no_figure = with_line(3, [](json& line) { line["columns"]["epoch"] = json::array(); });
  EXPECT_TRUE(contains(error_in(no_figure), "x.jsonl:3: damaged: a column of 0 figures for 1 epochs"));
  const auto unlisted = with_line(3, [](json& line) { line["epochs"] = 900000; });
  EXPECT_TRUE(contains(error_in(unlisted), "x.jsonl:3: damaged: no column lists the 900000 epochs"));
  const auto twice = with_line(3, [](json& line) { line["run"] = "a-seed1"; });
  EXPECT_TRUE(contains(error_in(twice), "x.jsonl:3: a-seed1 is there twice")) << error_in(twice);
  const auto neither = with_line(4, [](json& line) { line = {{"what", 1}}; });
  EXPECT_TRUE(contains(error_in(neither), "x.jsonl:4: damaged")) << error_in(neither);
}

TEST(PackedRecords, TwoOfOneNameAreRefused) {
  auto records = two_runs();
  records.runs[1].name = records.runs[0].name;
  EXPECT_TRUE(contains(error_of([&] { pack_records(records); }), "two records are called a-seed1"));
}

}  // namespace
}  // namespace sgdph::lab::records::packed_records_test
