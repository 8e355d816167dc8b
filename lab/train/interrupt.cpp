#include "train/interrupt.h"

#include <csignal>

namespace sgdph::lab {
namespace {

volatile std::sig_atomic_t raised = 0;

void raise_flag(int signal) {
  raised = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  raised = 0;
  std::signal(SIGINT, raise_flag);
  std::signal(SIGTERM, raise_flag);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool interrupted() {
  return raised != 0;
}

}  // namespace sgdph::lab
