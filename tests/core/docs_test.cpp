// The defaults in the documentation are those of the code.

#include "support/training.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

namespace sgdph::test {
namespace {

/// Collects every option's default as text.
class Defaults final : public detail::FieldVisitor {
 public:
  void operator()(const char* name, bool& value) override { found[name] = value ? "true" : "false"; }
  void operator()(const char* name, int64_t& value) override { found[name] = std::to_string(value); }
  void operator()(const char* name, double& value) override {
    std::ostringstream text;
    text << value;
    found[name] = text.str();
  }
  void operator()(const char* name, std::string& value) override { found[name] = '"' + value + '"'; }
  void operator()(const char*, at::Tensor&) override {}
  void operator()(const char*, std::vector<int64_t>&) override {}
  void operator()(const char* name, std::vector<double>& value) override {
    std::ostringstream text;
    text << "(" << value.at(0) << ", " << value.at(1) << ")";
    found[name] = text.str();
  }
  std::map<std::string, std::string> found;
};

/// The rows "| `option` | default | ..." of a document from the heading on to the next one of its level.
std::map<std::string, std::string> documented(const std::string& page, const std::string& heading) {
  std::ifstream file(std::string(SGDPH_DOCS_DIR) + "/" + page);
  std::map<std::string, std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) inside = line.find(heading) != std::string::npos;
    if (!inside || line.rfind("| `", 0) != 0) continue;
    const auto name_end = line.find('`', 3);
    const auto start = line.find("| ", name_end) + 2;
    rows[line.substr(3, name_end - 3)] = line.substr(start, line.find(" |", start) - start);
  }
  return rows;
}

void expect_documented(detail::Fields& options, const std::string& page, const std::string& heading) {
  Defaults defaults;
  options.visit(defaults);
  const auto rows = documented(page, heading);
  size_t checked = 0;
  for (const auto& [name, value] : defaults.found) {
    if (name.size() > 4 && name.substr(name.size() - 4) == "_set") continue;
    SCOPED_TRACE(heading + ", " + name);
    ASSERT_EQ(rows.count(name), 1) << "not documented";
    ++checked;
    const auto& text = rows.at(name);
    const auto flag = defaults.found.find(name + "_set");
    if (flag != defaults.found.end() && flag->second == "false") {
      EXPECT_EQ(text.rfind("unset", 0), 0) << text;
    } else if (name == "rule" || name == "probe") {
      EXPECT_EQ(text, name == "rule" ? to_string(SGDPHOptions().rule()) : to_string(SGDPHOptions().probe()));
    } else {
      std::ostringstream normalised;
      double number = 0;
      std::istringstream in(text);
      if (text.front() != '(' && in >> number && in.eof()) {
        normalised << number;
      } else {
        normalised << text;
      }
      EXPECT_EQ(normalised.str(), value);
    }
  }
  EXPECT_EQ(checked, rows.size()) << "something is documented that does not exist";
}

TEST(Documentation, StatesTheDefaultsOfEveryOption) {
  SGDPHOptions sgdph;
  AdaBeliefOptions adabelief;
  AdaHessianOptions adahessian;
  ApolloOptions apollo;
  expect_documented(sgdph, "sgd-ph.md", "Options");
  expect_documented(adabelief, "baselines.md", "AdaBelief");
  expect_documented(adahessian, "baselines.md", "AdaHessian");
  expect_documented(apollo, "baselines.md", "Apollo");
}

}  // namespace
}  // namespace sgdph::test
