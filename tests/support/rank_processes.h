#pragma once

#include "dist/address.h"
#include "dist/group.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_folder.h"

namespace sgdph::test {

/// Whether this process is one of several that a test started.
inline bool is_rank() {
  return std::getenv("SGDPH_TEST_RANK") != nullptr;
}

/// Starts this test once more in `count` processes on loopback, waits for them, and fails with what they said.
inline void run_in_processes(int count, std::vector<int> expected = {}) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const auto filter = std::string("--gtest_filter=") + test->test_suite_name() + '.' + test->name();
  const TempFolder folder;
  const auto port = std::to_string(lab::dist::free_port());
  expected.resize(static_cast<size_t>(count));
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    std::vector<std::string> variables{
        "SGDPH_TEST_RANK=1", "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(count),
        "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port};
    for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
    std::vector<char*> environment;
    for (auto& one : variables) environment.push_back(one.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe", words = filter;
    char* arguments[] = {program.data(), words.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const auto said = (folder.path() / std::to_string(rank)).string();
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(), O_CREAT | O_WRONLY, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t process = 0;
    ASSERT_EQ(posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments, environment.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    processes.push_back(process);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(240);
  for (int rank = 0; rank < count; ++rank) {
    const auto process = processes[static_cast<size_t>(rank)];
    int status = 0;
    while (::waitpid(process, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::ifstream file(folder.path() / std::to_string(rank));
    std::stringstream said;
    said << file.rdbuf();
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    EXPECT_EQ(code, expected[static_cast<size_t>(rank)]) << "rank " << rank << " of " << count << ":\n" << said.str();
  }
}

/// The group of a process that a test started.
inline lab::dist::GroupOptions quick_group() {
  lab::dist::GroupOptions options;
  options.timeout = 60;
  return options;
}

}  // namespace sgdph::test

/// A test whose body runs in every one of `ranks` processes, with their `group`.
#define RANK_TEST(suite, name, ranks)                                                           \
  static void suite##_##name(sgdph::lab::dist::Group& group);                                   \
  TEST(suite, name) {                                                                           \
    if (!sgdph::test::is_rank()) return sgdph::test::run_in_processes(ranks);                   \
    sgdph::lab::dist::Group group(sgdph::lab::dist::environment(), sgdph::test::quick_group()); \
    group.connect();                                                                            \
    suite##_##name(group);                                                                      \
  }                                                                                             \
  static void suite##_##name(sgdph::lab::dist::Group& group)
