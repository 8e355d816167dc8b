#include "base/interrupt.h"

#include <csignal>

namespace sgdph::lab {
namespace {

std::atomic<bool> raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void raise_flag(int signal) {
  raised = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  raised = false;
  for (const int signal : kSignals) std::signal(signal, raise_flag);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool interrupted() {
  return raised;
}

const std::atomic<bool>& interrupt_flag() {
  return raised;
}

}  // namespace sgdph::lab
