#include "train/progress.h"

#include "base/machine.h"
#include "base/terminal.h"
#include "base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sgdph::lab {
namespace {

constexpr double kRedraw = 0.1;       // seconds between two bars
constexpr double kBetweenLines = 30;  // seconds between two lines

}  // namespace

std::string bar_text(double fraction, int width) {
  const auto filled = std::clamp(static_cast<int>(fraction * width), 0, width);
  return std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(width - filled), '.');
}

Progress::Progress(ProgressStyle style) : style_(style), started_(seconds_now()) {
  if (style == ProgressStyle::Auto) style_ = is_terminal(STDERR_FILENO) ? ProgressStyle::Bar : ProgressStyle::Lines;
  last_shown_ = style_ == ProgressStyle::Lines ? started_ : 0;
}

double Progress::seconds_left(const ProgressState& state) {
  if (first_done_ < 0) first_done_ = state.done - 1;  // a continued run starts in the middle
  const auto done = static_cast<double>(std::max<int64_t>(1, state.done - first_done_));
  return (seconds_now() - started_) / done * static_cast<double>(state.total - state.done);
}

void Progress::show(const ProgressState& state) {
  const double left = seconds_left(state);
  const double now = seconds_now();
  const double gap = style_ == ProgressStyle::Lines ? kBetweenLines : kRedraw;
  if (style_ == ProgressStyle::Quiet || now - last_shown_ < gap) return;
  last_shown_ = now;
  if (style_ == ProgressStyle::Machine) {
    const nlohmann::json record{
        {"epoch", state.epoch},
        {"epochs", state.epochs},
        {"done", state.done},
        {"total", state.total},
        {"loss", state.loss},
        {"accuracy", state.accuracy},
        {"images_per_second", state.images_per_second},
        {"seconds_left", left}};
    fmt::print("{}\n", record.dump());
    std::fflush(stdout);
    return;
  }
  const double fraction = static_cast<double>(state.done) / static_cast<double>(state.total);
  const auto figures = fmt::format(
      "loss {:.3f}  acc {:5.2f} %  {:.0f} img/s  {} left", state.loss, state.accuracy, state.images_per_second,
      duration_text(left));
  if (style_ == ProgressStyle::Bar) {
    const auto line = fmt::format(
        "epoch {}/{} [{}] {:3.0f} %  {}", state.epoch, state.epochs, bar_text(fraction, 16), 100 * fraction, figures);
    fmt::print(stderr, "\r\x1b[K{}", fit_to_terminal(line));
    drawn_ = true;
  } else {
    fmt::print(stderr, "epoch {}/{}  {:3.0f} %  {}\n", state.epoch, state.epochs, 100 * fraction, figures);
  }
  std::fflush(stderr);
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

void Progress::line(const std::string& text) {
  clear();
  if (style_ == ProgressStyle::Machine || style_ == ProgressStyle::Quiet) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace sgdph::lab
