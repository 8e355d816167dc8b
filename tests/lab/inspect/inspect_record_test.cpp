#include "inspect/report.h"

#include "support/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab::inspect::inspect_record_test {
namespace {

using test::contains;
using test::error_of;

constexpr const char* kText = R"({"model": "resnet8", "refreshes": 32, "rows": [
    {"block": "bn1.weight", "channels": 4, "measured": 4, "off_diagonal": 1.25, "row_sum": {"cosine": null, "same_sign": 0.75},
     "diagonal": [1, null], "probes": [
       {"probe": "ones", "estimate": {"error": 8.125, "cosine": 0.25, "same_sign": 0.75}, "values": [1, 2]},
       {"probe": "hadamard", "estimate": {"error": 0.4375, "cosine": 1, "same_sign": null}}]},
    {"block": "bn2.weight", "channels": 4, "measured": 2, "shift_invariant": true},
    {"block": "bn3.weight", "channels": 4, "note": "not finite", "off_diagonal": null}],
  "verdict": {"blocks": 1, "text": "They are not."}})";

/// The cells of the line that begins so.
std::vector<std::string> cells_of(const std::string& markdown, const std::string& block) {
  const auto from = markdown.find("| " + block);
  std::vector<std::string> cells;
  std::string line = markdown.substr(from, markdown.find('\n', from) - from);
  for (size_t at = 0; (at = line.find('|', at)) != std::string::npos && at + 1 < line.size(); ++at) {
    auto cell = line.substr(at + 1, line.find('|', at + 1) - at - 1);
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
    cells.push_back(cell);
  }
  return cells;
}

TEST(InspectRecord, ComesBackFromItsJsonWithWhatIsNotKnown) {
  const auto report = records::read_inspect_report("inspect.json", kText);
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_TRUE(std::isnan(report.rows[0].row_sum.cosine));
  EXPECT_TRUE(std::isnan(report.rows[0].diagonal[1]));
  EXPECT_TRUE(std::isnan(report.rows[1].off_diagonal));
  const auto text = present(report).as(tables::TableFormat::Json);
  EXPECT_EQ(present(records::read_inspect_report("inspect.json", text)).as(tables::TableFormat::Json), text);
}

TEST(InspectRecord, ShowsTheBlocksWhatEachProbeHoldsAndTheVerdict) {
  const auto text = present(records::read_inspect_report("inspect.json", kText)).as(tables::TableFormat::Markdown);
  EXPECT_EQ(
      cells_of(text, "bn1.weight"),
      (std::vector<std::string>{"bn1.weight", "4", "1.25", "-", "-", "75 %", "-", "-", ""}));
  EXPECT_EQ(cells_of(text, "bn2.weight").back(), "shift-invariant, 2 rows");
  EXPECT_EQ(cells_of(text, "bn3.weight").back(), "not finite");
  const auto probes = text.substr(text.find("## What each probe holds after 32 refreshes"));
  EXPECT_TRUE(contains(probes, "error, ones")) << probes;
  EXPECT_EQ(
      cells_of(probes, "bn1.weight"),
      (std::vector<std::string>{"bn1.weight", "8.125", "0.4375", "0.25", "1", "75 %", "-"}));
  EXPECT_EQ(cells_of(probes, "bn2.weight"), (std::vector<std::string>{"bn2.weight", "-", "-", "-", "-", "-", "-"}));
  EXPECT_TRUE(contains(text, "They are not.")) << text;
}

TEST(InspectRecord, OfAnotherKindIsNamed) {
  for (const auto* text : {"", "[]", "{}", R"({"rows": 3, "verdict": {}})", R"({"rows": ["x"], "verdict": {}})"}) {
    const auto error = error_of([&] { records::read_inspect_report("there/inspect.json", text); });
    EXPECT_TRUE(contains(error, "there/inspect.json: not the figures of sgdph inspect")) << text << ": " << error;
  }
}

}  // namespace
}  // namespace sgdph::lab::inspect::inspect_record_test
