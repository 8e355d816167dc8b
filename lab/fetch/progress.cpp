#include "fetch/progress.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace sgdph::lab {
namespace {

constexpr double kMegabyte = 1e6;

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string download_progress(int64_t bytes, int64_t total, int64_t begun, double seconds) {
  const double speed = seconds > 0 ? static_cast<double>(bytes - begun) / seconds : 0;
  const auto rate = speed > 0 ? fmt::format("  {:.1f} MB/s", speed / kMegabyte) : "";
  if (total <= 0) return fmt::format("{:.1f} MB{}", static_cast<double>(bytes) / kMegabyte, rate);
  const auto eta = speed > 0 ? "  ETA " + duration(static_cast<double>(total - bytes) / speed) : "";
  return fmt::format(
      "{:3} %  {:.1f} of {:.1f} MB{}{}", bytes * 100 / total, static_cast<double>(bytes) / kMegabyte,
      static_cast<double>(total) / kMegabyte, rate, eta);
}

bool ProgressLine::due(int64_t done, int64_t total) {
  const auto now = Clock::now();
  // A download that starts anew begins again here as well.
  if (begun_ < 0 || done < begun_) {
    begun_ = done;
    start_ = last_ = now;
    tenths_ = total > 0 ? done * 10 / total : 0;
    return terminal_;
  }
  if (terminal_) {
    if (done != total && now - last_ < std::chrono::milliseconds(100)) return false;
    last_ = now;
    return true;
  }
  const auto tenths = total > 0 ? done * 10 / total : 0;
  if (tenths <= tenths_) return false;
  tenths_ = tenths;
  return true;
}

void ProgressLine::bytes(int64_t done, int64_t total) {
  if (!due(done, total)) return;
  print(download_progress(done, total, begun_, std::chrono::duration<double>(Clock::now() - start_).count()));
}

void ProgressLine::images(int64_t done, int64_t total) {
  if (due(done, total)) print(fmt::format("{:3} %  {} of {} images", done * 100 / total, done, total));
}

void ProgressLine::print(const std::string& text) {
  if (terminal_) {
    fmt::print(stderr, "\r{}\x1b[K", text);
    std::fflush(stderr);
    open_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

void ProgressLine::end() {
  if (open_) fmt::print(stderr, "\n");
  open_ = false;
}

}  // namespace sgdph::lab
