#pragma once

#include <atomic>

namespace sgdph::lab {

/// While one is alive, the first Ctrl-C (or SIGTERM, or a lost terminal) only raises a flag, so that work can be
/// brought to a good end; the second one of its kind, if it was not just told twice, ends the program as usual, but for
/// a lost terminal. A signal that was ignored stays so: nohup.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

bool interrupted();
/// Raises the flag: another process was asked, with which this one stops.
void interrupt();
/// The flag itself, for work that watches it from other threads.
const std::atomic<bool>& interrupt_flag();

/// Exit code of work ended by Ctrl-C.
constexpr int kInterrupted = 130;

}  // namespace sgdph::lab
