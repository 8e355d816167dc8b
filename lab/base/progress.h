#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace sgdph::lab {

/// How long work shows where it is.
enum class ProgressStyle {
  Auto,  ///< a bar if standard error is a terminal, lines otherwise
  Bar,
  Lines,
  Machine,  ///< JSON lines on standard output, for a program that watches
  Quiet
};

/// How long work will take yet, from what it took so far.
class TimeLeft {
 public:
  /// `estimate`: seconds of the whole, trusted until something is measured; 0: there is none.
  explicit TimeLeft(double estimate = 0) : estimate_(estimate) {}

  /// Time counts from `now` on; `fraction` was done before.
  void start(double fraction, double now);
  /// Seconds; nothing while there is no telling. Work that falls back behind its start begins anew.
  std::optional<double> at(double fraction, double now);

 private:
  double estimate_;
  double first_ = -1;
  double started_ = 0;
};

/// Long work on standard error: on a terminal one line, redrawn in place, with a bar and the time left; elsewhere a
/// plain line now and then; records for a parent process; or nothing.
class Progress {
 public:
  /// The whole is made of parts that weigh `weight` together and take about `seconds`, if that is known.
  explicit Progress(ProgressStyle style = ProgressStyle::Auto, double weight = 1, double seconds = 0);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next part begins, and the one before it is over. Without any, the whole is one part.
  void begin(const std::string& title, double weight = 1);
  /// So much of the part was done before: it does not count for the time left.
  void start(double fraction);
  /// Where the part is; below 0: not known. Shown ten times a second at most.
  void at(double fraction, const std::string& words = "");
  /// The same with figures for a program that watches.
  void at(double fraction, const std::string& words, const nlohmann::json& figures);
  /// What a child with ProgressStyle::Machine says of its part.
  void relay(const nlohmann::json& record);
  /// Rows that stand above the line on a terminal; each ends with a newline.
  void above(const std::string& rows);

  /// A result, on standard output; not said to a program that watches.
  void line(const std::string& text);
  /// A notice that stays, on standard error.
  void note(const std::string& text);
  /// Takes away what is drawn.
  void clear();

  /// Whether it is drawn in place, so that what passes need not be said as well.
  bool is_live() const { return style_ == ProgressStyle::Bar; }

 private:
  double whole(double fraction) const;
  void show(double fraction, const std::string& words, std::optional<double> left);
  void draw(const std::string& line);

  ProgressStyle style_;
  TimeLeft left_;
  double weight_;
  double done_ = 0;  ///< weight of the parts that are over
  double part_;      ///< weight of the one under way
  bool begun_ = false;
  std::string title_;
  std::string rows_;
  std::string drawn_;  ///< the line on the terminal
  size_t lines_drawn_ = 0;
  double last_shown_;
};

/// What a line on standard error begins with so that none of progress stays before it.
std::string over_progress();

}  // namespace sgdph::lab
