// The main function of every test executable. One executable has the tests of a room; `--file loader` runs those of
// loader_test.cpp, so that ctest knows each file by its name. Tests in suites named Slow... run with `--slow` alone,
// the others with `--quick` alone, all of them with neither.

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace {

struct Choice {
  std::string file;  ///< empty: all
  std::optional<bool> slow;

  bool takes(const testing::TestInfo& test) const {
    if (!file.empty() && std::filesystem::path(test.file()).filename() != file + "_test.cpp") return false;
    const std::string suite = test.test_suite_name();
    const bool is_slow = suite.rfind("Slow", 0) == 0 || suite.find("/Slow") != std::string::npos;
    return !slow || *slow == is_slow;
  }
};

/// The chosen tests by name, as --gtest_filter takes them.
std::string filter_for(const Choice& choice) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const auto& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& test = *suite.GetTestInfo(j);
      if (choice.takes(test)) filter += (filter.empty() ? "" : ":") + std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

int complain(const std::string& words) {
  std::cerr << words << '\n';
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Choice choice;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--file" && i + 1 < argc) {
      choice.file = argv[++i];
    } else if (word == "--slow" || word == "--quick") {
      choice.slow = word == "--slow";
    } else {
      return complain("unknown word '" + word + "'; there are --file NAME, --slow, --quick and those of GoogleTest");
    }
  }
  if (argc > 1) {
    const auto filter = filter_for(choice);
    // Nothing to run is a mistake in the list of tests, not a success.
    if (filter.empty()) return complain("no such test in " + std::string(argv[0]) + ": --file " + choice.file);
    if (testing::GTEST_FLAG(filter) != "*") return complain("--file and --gtest_filter exclude each other");
    testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
