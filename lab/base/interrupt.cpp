#include "base/interrupt.h"

#include <array>
#include <csignal>

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

void raise_flag(int signal) {
  raised = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  raised = false;
  for (size_t i = 0; i < kSignals.size(); ++i) {
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
