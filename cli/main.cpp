#include "base/progress.h"
#include "base/terminal.h"
#include "command.h"
#include "dist/group.h"
#include "train/compat.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// How long a thread of OpenMP that has nothing to do looks for work before it sleeps, in turns of a loop: about as
/// long as to fall asleep and be woken. That is libgomp's own figure where it knows of more threads than cores; of
/// another program's it does not know, and by default spins 300 times as long, in which time the other does nothing.
constexpr const char* kShortWait = "GOMP_SPINCOUNT=1000";

bool begins_with(const char* text, std::string_view prefix) {
  return std::string_view(text).substr(0, prefix.size()) == prefix;
}

/// Starts the program anew with that in its environment, unless the user has chosen. libgomp reads it when it is
/// loaded: no later moment will do, and this one comes before the libraries' own beginnings.
void wait_shortly(int argc, char** argv, char** environment) {
  if (argc < 2) return;
  const auto commands = sgdph::cli::commands();
  const auto computes = [&](const sgdph::cli::Command& command) {
    return command.computes && std::strcmp(command.name, argv[1]) == 0;
  };
  if (std::none_of(commands.begin(), commands.end(), computes)) return;
  std::vector<char*> variables;
  for (auto* variable = environment; *variable != nullptr; ++variable) {
    for (const auto* chosen : {"GOMP_SPINCOUNT=", "OMP_WAIT_POLICY="}) {
      if (begins_with(*variable, chosen)) return;
    }
    variables.push_back(*variable);
  }
  variables.insert(variables.end(), {const_cast<char*>(kShortWait), nullptr});
  // By its own name, which lists of processes show.
  std::array<char, PATH_MAX> program{};
  const auto length = ::readlink("/proc/self/exe", program.data(), program.size() - 1);
  if (length > 0) ::execve(program.data(), argv, variables.data());
  // If that is not to be had, it is as it was.
}
__attribute__((section(".preinit_array"), used)) void (*const before_libraries)(int, char**, char**) = wait_shortly;

/// LibTorch's warnings, the shift guard's notice among them, as lines of ours.
class LogWarnings : public sgdph::lab::train::WarningHandler {
 public:
  void say(const std::string& message) override { spdlog::warn("{}", message); }
};

}  // namespace

int main(int argc, char** argv) {
  sgdph::lab::outlive_listeners();
  spdlog::set_default_logger(spdlog::stderr_color_mt("sgdph"));
  spdlog::set_pattern(sgdph::lab::over_progress() + "sgdph: %^%l%$: %v");
  LogWarnings warnings;
  const sgdph::lab::train::WarningGuard guard(&warnings);
  const int code = sgdph::cli::run(argc, argv);
  if (sgdph::lab::dist::Group::was_abandoned()) {
    // Threads of c10d may wait for peers that are gone.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
