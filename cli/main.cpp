#include "base/progress.h"
#include "run.h"

#include <c10/util/Exception.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <string>

namespace {

/// LibTorch's warnings, the shift guard's notice among them, as lines of ours.
class LogWarnings : public c10::WarningHandler {
 public:
  void process(const c10::SourceLocation&, const std::string& message, bool) override { spdlog::warn("{}", message); }
};

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("sgdph"));
  spdlog::set_pattern(sgdph::lab::over_progress() + "sgdph: %^%l%$: %v");
  LogWarnings warnings;
  const c10::Warning::WarningHandlerGuard guard(&warnings);
  return sgdph::cli::run(argc, argv);
}
