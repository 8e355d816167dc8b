#pragma once

#include <atomic>

#include "base/error.h"

namespace sgdph::lab::fetch {

/// Ctrl-C: not the user's mistake, but handled like one by whoever does not care.
class Interrupted : public UserError {
 public:
  using UserError::UserError;
};

inline bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

}  // namespace sgdph::lab::fetch
