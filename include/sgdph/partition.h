#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>

#include <ostream>
#include <string>
#include <vector>

namespace sgdph {

/// Which parameters of an optimizer are blocks (second-order), and why.
struct SGDPH_API Partition {
  struct Entry {
    std::string name;  ///< as in `named_parameters()`, or group and position when built from tensors
    at::Tensor parameter;
    size_t group = 0;
    bool second_order = false;
    std::string reason;
  };

  std::vector<Entry> entries;  ///< in optimizer order
  size_t blocks() const;
};

/// One line per parameter.
SGDPH_API std::ostream& operator<<(std::ostream& out, const Partition& partition);

}  // namespace sgdph
