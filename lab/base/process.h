#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sgdph::lab {

struct ProcessEnd {
  int exit_code = -1;  ///< 128 + signal if a signal ended it
  std::string errors;  ///< what it wrote to standard error

  /// Why it failed, in one line: its last one, without the program's name.
  std::string reason() const;
};

/// Runs a program (first word) to its end and hands each line of its standard output to `line`. Ctrl-C reaches the
/// child as well, which is waited for.
ProcessEnd run_process(const std::vector<std::string>& words, const std::function<void(const std::string&)>& line);

/// The path of the running program.
std::string own_program();

}  // namespace sgdph::lab
