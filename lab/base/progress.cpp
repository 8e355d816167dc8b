#include "base/progress.h"

#include "base/clock.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <utility>

namespace sgdph::lab {
namespace {

constexpr double kBetweenBars = 0.1;  // seconds
constexpr double kBetweenLines = 30;
constexpr double kTold = 0.02;  // part of the work that tells more than an estimate
constexpr int kBarWidth = 16;

std::string bar(double fraction) {
  const auto filled = static_cast<size_t>(std::clamp(fraction, 0., 1.) * kBarWidth);
  return fmt::format("[{}{}]", std::string(filled, '#'), std::string(kBarWidth - filled, '.'));
}

}  // namespace

void TimeLeft::start(double fraction, double now) {
  first_ = fraction;
  started_ = now;
}

std::optional<double> TimeLeft::at(double fraction, double now) {
  if (fraction < 0) return std::nullopt;
  if (first_ < 0 || fraction < first_) start(fraction, now);
  const double told = fraction - first_;
  if (told > (estimate_ > 0 ? kTold : 0)) return (now - started_) * (1 - fraction) / told;
  if (estimate_ > 0) return estimate_ * (1 - fraction);
  return std::nullopt;
}

Progress::Progress(ProgressStyle style, double weight, double seconds)
    : style_(style), left_(seconds), weight_(weight), part_(weight) {
  if (style == ProgressStyle::Auto) style_ = is_terminal(STDERR_FILENO) ? ProgressStyle::Bar : ProgressStyle::Lines;
  last_shown_ = style_ == ProgressStyle::Lines ? seconds_now() : 0;
}

void Progress::begin(const std::string& title, double weight) {
  if (std::exchange(begun_, true)) done_ += part_;
  part_ = weight;
  title_ = title;
  if (style_ == ProgressStyle::Lines) note(title);
  if (style_ != ProgressStyle::Bar) return;
  last_shown_ = 0;
  at(0);
}

double Progress::whole(double fraction) const {
  return fraction < 0 ? -1 : std::min(1., (done_ + fraction * part_) / weight_);
}

void Progress::start(double fraction) {
  left_.start(whole(fraction), seconds_now());
}

void Progress::at(double fraction, const std::string& words) {
  at(fraction, words, nlohmann::json::object());
}

void Progress::at(double fraction, const std::string& words, const nlohmann::json& figures) {
  const double now = seconds_now();
  const double all = whole(fraction);
  const auto left = left_.at(all, now);
  const double gap = style_ == ProgressStyle::Lines ? kBetweenLines : kBetweenBars;
  if (style_ == ProgressStyle::Quiet || now - last_shown_ < gap) return;
  last_shown_ = now;
  if (style_ != ProgressStyle::Machine) return show(all, words, left);
  auto record = figures;
  record["fraction"] = all;
  record["words"] = words;
  if (left) record["seconds_left"] = *left;
  send_record(record);
}

void Progress::relay(const nlohmann::json& record) {
  if (record.contains("fraction")) at(record["fraction"], record.value("words", ""));
}

void Progress::show(double fraction, const std::string& words, std::optional<double> left) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() || text.empty() ? "" : "  ") + text; };
  if (fraction >= 0) add(fmt::format("{}{:3.0f} %", is_live() ? bar(fraction) + " " : "", 100 * fraction));
  if (left) add(fmt::format("about {} left", duration_text(*left)));
  add(title_);
  add(words);
  if (is_live()) return draw(line);
  note(line);
}

void Progress::above(const std::string& rows) {
  rows_ = rows;
  if (is_live()) draw(drawn_);
}

void Progress::draw(const std::string& line) {
  clear();
  drawn_ = line;
  const auto text = fit_to_terminal(rows_ + line);
  print(stderr, "{}", text);
  std::fflush(stderr);
  lines_drawn_ = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
}

void Progress::clear() {
  if (lines_drawn_ == 0) return;
  // To the first line of what was drawn, and clear from there.
  print(stderr, "\r{}", lines_drawn_ > 1 ? fmt::format("\x1b[{}A\x1b[J", lines_drawn_ - 1) : "\x1b[K");
  std::fflush(stderr);
  lines_drawn_ = 0;
}

void Progress::line(const std::string& text) {
  clear();
  if (style_ == ProgressStyle::Machine || style_ == ProgressStyle::Quiet) return;
  print("{}\n", text);
  show_now();
}

void Progress::note(const std::string& text) {
  clear();
  print(stderr, "{}\n", text);
  std::fflush(stderr);
}

std::string over_progress() {
  return is_terminal(STDERR_FILENO) ? "\r\x1b[K" : "";
}

}  // namespace sgdph::lab
