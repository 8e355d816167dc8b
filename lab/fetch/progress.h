#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sgdph::lab {

/// " 42 %  68.1 of 161.2 MB  3.4 MB/s  ETA 0:27"; without a total, what is known. `begun` bytes were there before: they
/// count for the percentage, not for the speed.
std::string download_progress(int64_t bytes, int64_t total, int64_t begun, double seconds);

/// A line on stderr that is written over, at most ten times a second; on anything but a terminal a plain line for every
/// tenth of the whole.
class ProgressLine {
 public:
  explicit ProgressLine(bool terminal) : terminal_(terminal) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void bytes(int64_t done, int64_t total);
  void images(int64_t done, int64_t total);
  /// Ends the line, so that something else can be printed.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool due(int64_t done, int64_t total);
  void print(const std::string& text);

  bool terminal_;
  bool open_ = false;
  int64_t begun_ = -1;
  int64_t tenths_ = 0;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace sgdph::lab
