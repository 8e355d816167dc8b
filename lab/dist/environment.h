#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sgdph::lab::dist {

/// Which of how many processes this is, as its launcher says.
struct Environment {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;  ///< on its host
  int64_t local_size = 1;  ///< processes of its host; 1 if the launcher does not say
  int64_t cores = 0;       ///< that are this one's alone; 0 if the launcher does not say
  std::string address;     ///< where rank 0 is
  int64_t port = 0;
  std::string launcher;             ///< for messages: "torchrun", "Open MPI"; empty if there is none
  bool launcher_has_store = false;  ///< torchrun's agent answers at `port`, not rank 0
  int64_t restarts = 0;

  bool alone() const { return size == 1; }
};

using GetVariable = std::function<const char*(const char* name)>;

/// From the variables of torchrun (which may be set by hand), Open MPI, Hydra (MPICH, Intel MPI) or Slurm. One process
/// if there are none. Refuses what is incomplete, out of range or contradictory.
Environment read_environment(const GetVariable& get);
/// Of this process.
Environment environment();

/// Why this process ends, where torchrun's agent looks for it; nothing without one.
void tell_launcher(const std::string& reason);

/// The name of this host.
std::string host_name();

}  // namespace sgdph::lab::dist
