#include "study/live_table.h"

#include "base/machine.h"
#include "base/terminal.h"
#include "base/text.h"
#include "records/run_record.h"
#include "train/progress.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdio>

namespace sgdph::lab {

LiveTable::LiveTable(std::vector<StudyRun> plan, std::function<std::string()> table)
    : plan_(std::move(plan)), table_(std::move(table)), rows_(table_()), terminal_(is_terminal(STDERR_FILENO)) {}

std::string LiveTable::name_of(size_t run) const {
  return fmt::format("[{}/{}] {}", run + 1, plan_.size(), plan_[run].name);
}

void LiveTable::skip(size_t run) {
  ++skipped_;
  if (!terminal_) fmt::print(stderr, "{}: done before\n", name_of(run));
}

void LiveTable::begin(size_t run) {
  run_began_ = seconds_now();
  if (terminal_) {
    draw(name_of(run) + ": starting");
  } else {
    fmt::print(stderr, "{}: starting\n", name_of(run));
  }
}

/// What is left of this run, and for those after it the mean of the runs so far.
double LiveTable::seconds_left(size_t run, double of_run) const {
  const double this_run = seconds_now() - run_began_ + of_run;
  const double mean = (spent_ + this_run) / static_cast<double>(ended_ + 1);
  return of_run + mean * static_cast<double>(plan_.size() - run - 1);
}

void LiveTable::update(size_t run, const std::string& record) {
  const auto state = nlohmann::json::parse(record, nullptr, false);
  if (!terminal_ || !state.is_object() || seconds_now() - last_drawn_ < 0.1) return;
  const auto figure = [&](const char* key) { return state.value(key, 0.); };
  const double fraction = figure("done") / std::max(1., figure("total"));
  draw(fmt::format(
      "{}: epoch {:.0f}/{:.0f} [{}] {:3.0f} %  loss {:.3f}  {:.0f} img/s  {} left in all", name_of(run),
      figure("epoch"), figure("epochs"), bar_text(fraction, 20), 100 * fraction, figure("loss"),
      figure("images_per_second"), duration_text(seconds_left(run, figure("seconds_left")))));
}

void LiveTable::end(size_t run, const std::string& error) {
  spent_ += seconds_now() - run_began_;
  ++ended_;
  rows_ = table_();
  if (!error.empty()) {
    close();
    fmt::print(stderr, "{}: failed: {}\n", name_of(run), error);
  } else if (terminal_) {
    draw("");
  } else {
    const auto record = read_run_record(plan_[run].folder);
    fmt::print(
        stderr, "{}: {}, test accuracy {:.2f} %, {}\n", name_of(run), record ? record->status : "no record",
        record ? record->top1 : 0., duration_text(record ? record->train_seconds : 0));
  }
}

void LiveTable::draw(const std::string& status) {
  close();
  const auto text = fit_to_terminal(rows_ + status);
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
  lines_drawn_ = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  last_drawn_ = seconds_now();
}

void LiveTable::close() {
  if (lines_drawn_ == 0) return;
  // To the first line of what was drawn, and clear from there.
  fmt::print(stderr, "\r{}\x1b[J", lines_drawn_ > 1 ? fmt::format("\x1b[{}A", lines_drawn_ - 1) : "");
  std::fflush(stderr);
  lines_drawn_ = 0;
}

}  // namespace sgdph::lab
