#include "base/process.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/interrupt.h"

namespace sgdph::lab::process_test {
namespace {

ProcessEnd run(const std::string& script, std::vector<nlohmann::json>* records = nullptr) {
  return run_process({"/bin/sh", "-c", script}, [&](const nlohmann::json& record) {
    if (records != nullptr) records->push_back(record);
  });
}

TEST(AProcess, HandsOnItsRecordsAndNothingElse) {
  std::vector<nlohmann::json> records;
  const auto end = run(R"(echo '{"a": 1}'; echo words; echo 3; printf '{"b":'; echo ' [2]}'; echo why >&2)", &records);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.errors, "why\n");
  EXPECT_EQ(records, (std::vector<nlohmann::json>{{{"a", 1}}, {{"b", {2}}}}));
}

TEST(AProcess, GivesWholeLinesErrorsAndExitCode) {
  std::vector<nlohmann::json> records;
  const auto end = run(R"(echo '{"a": 1}'; printf '{"a": 2}\n{"a": 3}'; echo oops >&2; exit 7)", &records);
  EXPECT_EQ(records, (std::vector<nlohmann::json>{{{"a", 1}}, {{"a", 2}}})) << "the last line has no end";
  EXPECT_EQ(end.errors, "oops\n");
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(run("kill -9 $$").exit_code, 137);
}

TEST(AProcess, SaysWhyItFailed) {
  EXPECT_EQ(run("echo first >&2; echo 'sgdph: no such model' >&2; exit 2").reason(), "no such model");
  EXPECT_EQ(run("exit 3").reason(), "ended with exit code 3");
  EXPECT_EQ(run("kill -9 $$").reason(), "ended by signal 9");
  EXPECT_EQ(run_process({"/no/such/program"}, [](const nlohmann::json&) {}).exit_code, 127);
}

TEST(AnInterruption, ThatIsToldTwiceAtOnceIsMeantOnceAndALostTerminalAlways) {
  const auto told = [](int signal, int pause) {
    const InterruptGuard guard;
    std::raise(signal);
    std::raise(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    std::raise(signal);
    std::_Exit(interrupted() ? 7 : 0);
  };
  EXPECT_EXIT(told(SIGTERM, 0), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(told(SIGTERM, 300), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(
      told(SIGHUP, 300), [](int status) { return WIFEXITED(status); }, "")
      << "under nohup it is ignored";
}

TEST(ARecord, IsALineOfJson) {
  testing::internal::CaptureStdout();
  send_record({{"fraction", 0.5}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"fraction\":0.5}\n");
}

}  // namespace
}  // namespace sgdph::lab::process_test
