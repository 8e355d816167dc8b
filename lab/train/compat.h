#pragma once

// All that versions of LibTorch differ in and the lab meets; the library has its own such header.

#include <ATen/autocast_mode.h>
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

/// Lets a device's operators compute in bfloat16 while it lives, if it is `on`: those that LibTorch deems fit for it.
/// Guards may stand inside one another.
class Autocast {
 public:
  Autocast(const at::Device& device, bool on) : device_(device.type()), on_(on) {
    if (!on_) return;
    before_ = is_enabled();
    type_before_ = type();
    set(true, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (!on_) return;
    // What was cast is kept for the outermost guard: the weights change after it.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set(before_, type_before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 4)  // a function for each device
  bool cpu() const {
    return device_ == at::kCPU;
  }
  bool is_enabled() const {
    return cpu() ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
  }
  at::ScalarType type() const {
    return cpu() ? at::autocast::get_autocast_cpu_dtype() : at::autocast::get_autocast_gpu_dtype();
  }
  void set(bool on, at::ScalarType type) const {
    cpu() ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
    cpu() ? at::autocast::set_autocast_cpu_dtype(type) : at::autocast::set_autocast_gpu_dtype(type);
  }
#else
  bool is_enabled() const {
    return at::autocast::is_autocast_enabled(device_);
  }
  at::ScalarType type() const {
    return at::autocast::get_autocast_dtype(device_);
  }
  void set(bool on, at::ScalarType type) const {
    at::autocast::set_autocast_enabled(device_, on);
    at::autocast::set_autocast_dtype(device_, type);
  }
#endif

  at::DeviceType device_;
  bool on_;
  bool before_ = false;
  at::ScalarType type_before_ = at::kBFloat16;
};

}  // namespace sgdph::lab::train
