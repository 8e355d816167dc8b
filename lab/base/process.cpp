#include "base/process.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace sgdph::lab {
namespace {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (auto& end : ends) close_end(end);
  }
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

/// Appends what there is; false at the end.
bool read_some(int file, std::string& to) {
  std::array<char, 4096> buffer{};
  const auto count = ::read(file, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  to.append(buffer.data(), static_cast<size_t>(count));
  return count > 0;
}

void take_lines(std::string& text, const TakeRecord& take) {
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    const auto record = nlohmann::json::parse(text.substr(0, end), nullptr, false);
    if (record.is_object()) take(record);
    text.erase(0, end + 1);
  }
}

}  // namespace

ProcessEnd run_process(const std::vector<std::string>& words, const TakeRecord& take) {
  Pipe out;
  Pipe err;
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child < 0) fail("cannot start {}: {}", words.front(), std::strerror(errno));
  if (child == 0) {
    // A group of its own: Ctrl-C reaches the parent alone, which hands it on once. The child does not outlive it.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);  // it ended before it was asked to tell
    ::dup2(out.ends[1], STDOUT_FILENO);
    ::dup2(err.ends[1], STDERR_FILENO);
    ::execv(arguments.front(), arguments.data());
    ::_exit(127);
  }
  Pipe::close_end(out.ends[1]);
  Pipe::close_end(err.ends[1]);
  ProcessEnd end;
  std::string text;
  bool handed_on = false;
  std::array<pollfd, 2> watched{pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (::poll(watched.data(), watched.size(), 200) < 0 && errno != EINTR) break;
    if (interrupted() && !handed_on) {
      ::kill(child, SIGTERM);  // a shell may have told its background jobs to ignore Ctrl-C
      handed_on = true;
    }
    if (watched[0].revents != 0 && !read_some(watched[0].fd, text)) watched[0].fd = -1;
    if (watched[1].revents != 0 && !read_some(watched[1].fd, end.errors)) watched[1].fd = -1;
    for (auto& file : watched) file.revents = 0;
    take_lines(text, take);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

std::string ProcessEnd::reason() const {
  if (exit_code > 128) return fmt::format("ended by signal {}", exit_code - 128);
  auto text = errors;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text = text.substr(text.rfind('\n') + 1);  // the last line; npos + 1 is 0
  const std::string prefix = "sgdph: ";
  if (text.rfind(prefix, 0) == 0) text = text.substr(prefix.size());
  return text.empty() ? fmt::format("ended with exit code {}", exit_code) : text;
}

void send_record(const nlohmann::json& record) {
  print("{}\n", record.dump());
  show_now();
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace sgdph::lab
