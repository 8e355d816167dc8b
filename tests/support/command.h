#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "support/checks.h"

namespace sgdph::test {

using Words = std::vector<std::string>;

/// What the command said and how it ended.
struct CommandEnd {
  int code = 0;
  std::string out;
  std::string errors;
};

/// Tests that run the command in their own process, in a folder of their own, with a small data set beside it.
class CommandTest : public testing::Test {
 public:
  CommandTest();
  ~CommandTest() override;
  CommandTest(const CommandTest&) = delete;
  CommandTest& operator=(const CommandTest&) = delete;

 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  /// A learnable Fashion-MNIST of 256 training and 64 test images, the same for all tests.
  static std::string data();
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string in_folder(const std::string& name) const { return (folder() / name).string(); }

  /// The words of a run of seconds; without an output it goes to the default folder.
  static Words small(const std::string& opt, int epochs, const std::string& output = "", const Words& more = {});

  static CommandEnd run(const Words& words);
  /// Fails the test unless the command ends well.
  static CommandEnd succeed(const Words& words);
  /// Fails the test unless the command ends with one line on standard error that has these words, exit code 2, and
  /// nothing written.
  void refuse(const Words& words, const Words& says) const;

 private:
  TempFolder folder_;
  std::filesystem::path before_;
};

/// One list of words after the other.
Words operator+(Words one, const Words& other);

/// The records of a run's log, all or those of a type.
std::vector<nlohmann::json> records_of(const std::filesystem::path& log, const std::string& type = "");

}  // namespace sgdph::test
