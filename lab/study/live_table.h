#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/run_plan.h"

namespace sgdph::lab {

/// The state of a study while it runs: on a terminal its table, redrawn in place, with a bar for the run under way;
/// otherwise a line when a run begins and ends.
class LiveTable {
 public:
  /// `table` is asked for the table anew whenever a run has ended.
  LiveTable(std::vector<StudyRun> plan, std::function<std::string()> table);

  void skip(size_t run);
  void begin(size_t run);
  /// A progress record of the run under way, as `train --progress machine` writes it.
  void update(size_t run, const std::string& record);
  void end(size_t run, const std::string& error);
  /// Takes the live part away.
  void close();

 private:
  std::string name_of(size_t run) const;
  double seconds_left(size_t run, double of_run) const;
  void draw(const std::string& status);

  std::vector<StudyRun> plan_;
  std::function<std::string()> table_;
  std::string rows_;  ///< the table so far
  bool terminal_;
  size_t lines_drawn_ = 0;
  double last_drawn_ = 0;
  double run_began_ = 0;
  double spent_ = 0;  ///< seconds on runs that ended
  size_t ended_ = 0;
  size_t skipped_ = 0;
};

}  // namespace sgdph::lab
