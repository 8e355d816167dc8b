#pragma once

// All that versions of LibTorch differ in and the lab meets; the library has its own such header.

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <string>

namespace sgdph::lab::train {

/// Hears LibTorch's warnings while a `WarningGuard` lives that was given it.
class WarningHandler : public c10::WarningHandler {
 public:
  virtual void say(const std::string& message) = 0;

 private:
#if TORCH_VERSION_MAJOR < 2  // what can be asked for is a type's member, not a namespace's
  void process(const c10::SourceLocation&, const std::string& message, bool) final {
    say(message);
  }
};
using WarningGuard = c10::Warning::WarningHandlerGuard;
#else
  void process(const c10::Warning& warning) final {
    say(warning.msg());
  }
};
using WarningGuard = c10::WarningUtils::WarningHandlerGuard;
#endif

template <class Total>
Total total_of(void (c10::MemoryReportingInfoBase::*)(void*, int64_t, Total, Total, c10::Device));
/// What an allocator's report counts all bytes in: signed in 1.x, unsigned in 2.x.
using TotalBytes = decltype(total_of(&c10::MemoryReportingInfoBase::reportMemoryUsage));

}  // namespace sgdph::lab::train
