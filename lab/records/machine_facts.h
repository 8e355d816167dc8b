#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace sgdph::lab::records {

/// By what and when something was computed: what every record says first.
struct MachineFacts {
  std::string cpu, libtorch, version, started;
  int64_t threads = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineFacts, cpu, libtorch, version, started, threads)

/// Of this machine, now. LibTorch's version comes from those that see LibTorch.
MachineFacts machine_facts(const std::string& libtorch, int64_t threads);

}  // namespace sgdph::lab::records
