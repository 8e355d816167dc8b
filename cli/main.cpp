#include "base/progress.h"
#include "base/terminal.h"
#include "command.h"
#include "train/compat.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace {

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
  return sgdph::cli::run(argc, argv);
}
