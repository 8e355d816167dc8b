#include "support/command.h"

#include <command.h>  // the command.h of cli, not the one beside this file
#include "base/files.h"
#include "support/sample_data.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace sgdph::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<TempFolder> sample;

/// Every file and folder below it, with the bytes of the files.
std::vector<std::pair<std::string, std::string>> content_of(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    content.emplace_back(entry.path().string(), entry.is_regular_file() ? lab::read_file(entry.path()) : "");
  }
  std::sort(content.begin(), content.end());
  return content;
}

}  // namespace

CommandTest::CommandTest() : before_(fs::current_path()) {
  fs::current_path(folder());
}

CommandTest::~CommandTest() {
  fs::current_path(before_);
}

void CommandTest::SetUpTestSuite() {
  sample = std::make_unique<TempFolder>();
  write_fashion_mnist(sample->path(), 256, 64, 1);
}

void CommandTest::TearDownTestSuite() {
  sample.reset();
}

std::string CommandTest::data() {
  return sample->path().string();
}

Words CommandTest::small(const std::string& opt, int epochs, const std::string& output, const Words& more) {
  const Words words{
      "train", "--dataset", "fashion-mnist", "--data-path",          data(),      "--width", "0.5", "-b", "32",
      "--opt", opt,         "--epochs",      std::to_string(epochs), "--threads", "1"};
  return words + more + (output.empty() ? Words{} : Words{"--output-dir", output});
}

CommandEnd CommandTest::run(const Words& words) {
  auto line = Words{"sgdph"} + words;
  std::vector<char*> pointers;
  for (auto& word : line) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  CommandEnd end;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  end.code = cli::run(static_cast<int>(line.size()), pointers.data());
  end.errors = testing::internal::GetCapturedStderr();
  end.out = testing::internal::GetCapturedStdout();
  return end;
}

CommandEnd CommandTest::succeed(const Words& words) {
  auto end = run(words);
  EXPECT_EQ(end.code, 0) << testing::PrintToString(words) << '\n' << end.errors;
  return end;
}

void CommandTest::refuse(const Words& words, const Words& says) const {
  SCOPED_TRACE(testing::PrintToString(words));
  const auto before = content_of(folder());
  const auto end = run(words);
  EXPECT_EQ(end.code, 2) << end.out << end.errors;
  EXPECT_EQ(std::count(end.errors.begin(), end.errors.end(), '\n'), 1) << end.errors;
  EXPECT_EQ(end.errors.rfind("sgdph: ", 0), 0U) << end.errors;
  for (const auto& part : says) EXPECT_PRED2(contains, end.errors, part);
  EXPECT_EQ(content_of(folder()), before);
}

Words operator+(Words one, const Words& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

std::vector<nlohmann::json> records_of(const std::filesystem::path& log, const std::string& type) {
  std::ifstream file(log);
  if (!file) throw std::runtime_error("there is no " + log.string());
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) {
    auto record = nlohmann::json::parse(line);
    if (type.empty() || record.at("type") == type) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sgdph::test
