#pragma once

#include <cstdint>
#include <string>

namespace sgdph::lab {

/// How a run shows where it is.
enum class ProgressStyle {
  Auto,  ///< a bar if standard error is a terminal, lines otherwise
  Bar,
  Lines,
  Machine,  ///< JSON lines on standard output, for a program that watches
  Quiet
};

struct ProgressState {
  int64_t epoch = 0;  ///< from 1
  int64_t epochs = 0;
  int64_t done = 0;  ///< batches of the whole run
  int64_t total = 0;
  double loss = 0;      ///< mean of the epoch so far
  double accuracy = 0;  ///< in per cent, of the epoch so far
  double images_per_second = 0;
};

/// Shows the state of a run: a bar redrawn a few times a second, or a line now and then.
class Progress {
 public:
  explicit Progress(ProgressStyle style);

  void show(const ProgressState& state);
  /// A permanent line; the bar is taken away first.
  void line(const std::string& text);
  /// Takes the bar away.
  void clear();

  /// Whether a watching program reads standard output: then nothing else may be written there.
  bool is_machine() const { return style_ == ProgressStyle::Machine; }

 private:
  double seconds_left(const ProgressState& state);

  ProgressStyle style_;
  bool drawn_ = false;
  double last_shown_ = 0;
  double started_ = 0;
  int64_t first_done_ = -1;
};

/// A bar of `width` characters, filled by `fraction`.
std::string bar_text(double fraction, int width);

}  // namespace sgdph::lab
