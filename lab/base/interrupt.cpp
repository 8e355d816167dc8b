#include "base/interrupt.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace sgdph::lab {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
/// What was done at each signal before the guard.
std::array<struct sigaction, kSignals.size()> before{};

/// What the program was started to ignore. Asked before any library's own beginning: UCX, which some builds of LibTorch
/// bring, takes SIGHUP for itself then.
std::array<bool, kSignals.size()> ignored{};

void note_ignored(int, char**, char**) {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ignored[i] = ::sigaction(kSignals[i], nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  }
}
__attribute__((section(".preinit_array"), used)) void (*const first)(int, char**, char**) = note_ignored;

/// When each signal came first, in nanoseconds; 0: not yet.
std::array<std::atomic<int64_t>, kSignals.size()> first_came{};
static_assert(std::atomic<int64_t>::is_always_lock_free, "set by a signal handler");

/// What comes within this time was told twice and meant once: `timeout` sends its signal to the process and to its
/// group, and a launcher hands on the Ctrl-C that the terminal has sent already.
constexpr int64_t kAtOnce = 250'000'000;

void raise_flag(int signal) {
  raised = true;
  timespec clock{};
  ::clock_gettime(CLOCK_MONOTONIC, &clock);
  const auto now = int64_t{clock.tv_sec} * 1'000'000'000 + clock.tv_nsec;
  auto& first = first_came[static_cast<size_t>(std::find(kSignals.begin(), kSignals.end(), signal) - kSignals.begin())];
  int64_t none = 0;
  // That a terminal went away is told by the kernel and by its shell, as late as that comes to it.
  if (first.compare_exchange_strong(none, now) || signal == SIGHUP || now - first < kAtOnce) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  raised = false;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    first_came[i] = 0;
    ::sigaction(kSignals[i], nullptr, &before[i]);
    // Whoever started the program to go on without its terminal (nohup) or beside a shell's own work has it ignored.
    if (ignored[i]) before[i].sa_handler = SIG_IGN;
    std::signal(kSignals[i], before[i].sa_handler == SIG_IGN ? SIG_IGN : raise_flag);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

void interrupt() {
  raised = true;
}

bool interrupted() {
  return raised;
}

const std::atomic<bool>& interrupt_flag() {
  return raised;
}

}  // namespace sgdph::lab
