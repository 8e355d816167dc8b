#pragma once

#include "dist/address.h"
#include "dist/group.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_folder.h"

namespace sgdph::test {

/// Makes this process, a test's child, the rank, with what it says in a file, and ends it with the body's result.
[[noreturn]] inline void become_rank(
    int rank, int count, const std::string& port, const std::filesystem::path& said,
    const std::function<void()>& body) {
  const int file = ::open(said.c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", port.c_str(), 1);
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  std::fflush(nullptr);
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

/// Runs the body in `count` processes on loopback, waits for them, and fails with what they said where an exit code is
/// another than expected. They are copies of this one, which has no threads yet: LibTorch takes half a second to begin.
inline void run_in_processes(int count, const std::function<void()>& body, std::vector<int> expected = {}) {
  const TempFolder folder;
  const auto port = std::to_string(lab::dist::free_port());
  expected.resize(static_cast<size_t>(count));
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int rank = 0; rank < count; ++rank) {
    const auto process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) become_rank(rank, count, port, folder / std::to_string(rank), body);
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
    std::ifstream file(folder / std::to_string(rank));
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
#define RANK_TEST(suite, name, ranks)                                                             \
  static void suite##_##name(sgdph::lab::dist::Group& group);                                     \
  TEST(suite, name) {                                                                             \
    sgdph::test::run_in_processes(ranks, [] {                                                     \
      sgdph::lab::dist::Group group(sgdph::lab::dist::environment(), sgdph::test::quick_group()); \
      group.connect();                                                                            \
      suite##_##name(group);                                                                      \
    });                                                                                           \
  }                                                                                               \
  static void suite##_##name(sgdph::lab::dist::Group& group)
