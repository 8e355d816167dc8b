#pragma once

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sgdph::test {

/// Turns autocast of CPU operators to bfloat16 on while it lives; by the dispatch key, since the function's name is not
/// the same in all versions of LibTorch.
class CpuAutocast {
 public:
  explicit CpuAutocast(bool on = true) { set(on); }
  CpuAutocast(const CpuAutocast&) = delete;
  CpuAutocast& operator=(const CpuAutocast&) = delete;
  ~CpuAutocast() {
    at::autocast::clear_cache();
    set(false);
  }

 private:
  static void set(bool on) { c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, !on); }
};

}  // namespace sgdph::test
