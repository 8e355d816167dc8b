#pragma once

#include <nlohmann/json_fwd.hpp>

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

using TakeRecord = std::function<void(const nlohmann::json& record)>;

/// Runs a program (first word) to its end and hands on each record that it sends; other lines of its standard output
/// are passed over. Ctrl-C reaches the child as well, which is waited for.
ProcessEnd run_process(const std::vector<std::string>& words, const TakeRecord& take);

/// What stands in its place where several processes start the same.
using RunProcess = std::function<ProcessEnd(const std::vector<std::string>& words, const TakeRecord& take)>;

/// In the child: a record for the parent, a line of JSON on standard output.
void send_record(const nlohmann::json& record);

/// The path of the running program.
std::string own_program();

}  // namespace sgdph::lab
