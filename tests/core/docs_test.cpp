// The tables of options in the documentation are those of the catalogue. With SGDPH_WRITE_DOCS set they are written
// anew (make docs).

#include <sgdph/schema.h>

#include "support/paths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sgdph::test::docs_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnd = "<!-- end of options -->\n";

std::string first_line(const OptimizerInfo& info) {
  return "<!-- options of " + info.name + " -->\n";
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string number_text(double value) {
  return to_string(OptionValue(value));
}

/// ">= 0", "> 0", "in [0, 1)"; nothing where every number is taken.
std::string range_text(const Bound& bound) {
  if (std::isfinite(bound.low) && std::isfinite(bound.high)) {
    return std::string(" in ") + (bound.low_open ? "(" : "[") + number_text(bound.low) + ", " +
           number_text(bound.high) + (bound.high_open ? ")" : "]");
  }
  if (std::isfinite(bound.low)) return (bound.low_open ? " > " : " >= ") + number_text(bound.low);
  return std::isfinite(bound.high) ? (bound.high_open ? " < " : " <= ") + number_text(bound.high) : "";
}

std::string taken(const OptionInfo& option) {
  std::string text;
  if (!option.choices.empty()) {
    for (const auto& choice : option.choices) text += (text.empty() ? "" : ", ") + choice;
  } else if (std::holds_alternative<bool>(option.value)) {
    text = "true, false";
  } else {
    const auto* numbers = std::get_if<std::vector<double>>(&option.value);
    text = numbers != nullptr                              ? std::to_string(numbers->size()) + " numbers"
           : std::holds_alternative<int64_t>(option.value) ? "whole number"
                                                           : "number";
    text += range_text(option.bound);
  }
  return option.shared ? text + "; optimizer-wide" : text;
}

std::string option_table(const OptimizerInfo& info) {
  std::ostringstream table;
  table << "| option | default | takes | |\n|---|---|---|---|\n";
  for (const auto& option : info.options) {
    table << "| `" << option.name << "` | " << (option.unset ? "unset" : to_string(option.value)) << " | "
          << taken(option) << " | " << option.help << " |\n";
  }
  return table.str();
}

/// A page with a place for tables: where they begin and end.
struct Place {
  fs::path page;
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Place> places_of(const OptimizerInfo& info) {
  std::vector<Place> places;
  for (const auto& entry : fs::directory_iterator(kDocsDir)) {
    if (entry.path().extension() != ".md") continue;
    const auto text = read(entry.path());
    const auto begin = text.find(first_line(info));
    if (begin == std::string::npos) continue;
    const auto table = begin + first_line(info).size();
    places.push_back({entry.path(), table, text.find(kEnd, table)});
  }
  return places;
}

class Documentation : public testing::TestWithParam<OptimizerInfo> {};

TEST_P(Documentation, HasTheOptionsOfTheCatalogue) {
  const auto& info = GetParam();
  const auto places = places_of(info);
  ASSERT_EQ(places.size(), 1) << "write the lines\n"
                              << first_line(info) << kEnd << "on one page of docs/ and run make docs";
  const auto& place = places.front();
  ASSERT_NE(place.end, std::string::npos) << place.page << " lacks the line " << kEnd;
  auto text = read(place.page);
  const auto wanted = option_table(info);
  if (std::getenv("SGDPH_WRITE_DOCS") != nullptr) {
    text.replace(place.begin, place.end - place.begin, wanted);
    std::ofstream(place.page) << text;
  } else {
    EXPECT_EQ(text.substr(place.begin, place.end - place.begin), wanted) << "run make docs";
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Documentation, testing::ValuesIn(optimizers()), [](const auto& info) {
  auto name = info.param.name;
  for (auto& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

}  // namespace
}  // namespace sgdph::test::docs_test
