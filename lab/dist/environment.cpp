#include "dist/environment.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

namespace sgdph::lab::dist {
namespace {

/// The names that a launcher has for things.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* cores = "";
};

constexpr Names kTorchrun{"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr std::array<Names, 3> kOthers{
    {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
     {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_CPUS_PER_TASK"}}};

class Variables {
 public:
  explicit Variables(const GetVariable& get) : get_(get) {}

  std::string text(const char* name) const {
    const auto* value = get_(name);
    return value == nullptr ? "" : value;
  }
  bool has(const char* name) const { return !text(name).empty(); }

  std::optional<int64_t> number(const char* name, int64_t low, int64_t high) const {
    const auto value = text(name);
    if (value.empty()) return std::nullopt;
    const auto number = number_from<int64_t>(value);
    if (!number || *number < low || *number > high) {
      fail("{} is '{}' in the environment; it must be a number from {} to {}", name, value, low, high);
    }
    return number;
  }

 private:
  const GetVariable& get_;
};

constexpr int64_t kMost = 1 << 20;

/// Nothing if this launcher did not start the process.
std::optional<Environment> read(const Names& names, const Variables& variables) {
  // Inside an allocation Slurm's variables are there for a plain command too: a step has a number.
  const bool slurm = std::string_view(names.launcher) == "Slurm";
  if (slurm && !number_from<int64_t>(variables.text("SLURM_STEP_ID"))) return std::nullopt;
  const bool rank = variables.has(names.rank);
  const bool size = variables.has(names.size);
  if (!rank && !size) return std::nullopt;
  if (rank != size) {
    if (std::string_view(names.rank) != kTorchrun.rank) return std::nullopt;
    fail(
        "{} is set and {} is not; a process of many needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
        rank ? names.rank : names.size, rank ? names.size : names.rank);
  }
  Environment found;
  found.launcher = names.launcher;
  found.size = *variables.number(names.size, 1, kMost);
  found.rank = *variables.number(names.rank, 0, kMost);
  if (found.rank >= found.size) {
    fail("{} is {} and {} is {}; ranks count from 0 to one less", names.rank, found.rank, names.size, found.size);
  }
  found.local_rank = variables.number(names.local_rank, 0, kMost).value_or(0);
  // Slurm writes "2(x3),1".
  const auto on_host = variables.text(names.local_size);
  found.local_size =
      std::max<int64_t>(1, number_from<int64_t>(on_host.substr(0, on_host.find_first_of("(,"))).value_or(1));
  found.cores = variables.number(names.cores, 1, kMost).value_or(0);
  return found;
}

/// What one launcher does not say of the host, and another does: RANK set by hand within a step of Slurm, or PMI_RANK
/// by Slurm itself.
void complete(Environment& chosen, const Environment& other) {
  if (chosen.local_size == 1 && other.local_size > 1) {
    chosen.local_rank = other.local_rank;
    chosen.local_size = other.local_size;
  }
  if (chosen.cores == 0) chosen.cores = other.cores;
}

void read_master(Environment& found, const Variables& variables) {
  found.address = variables.text("MASTER_ADDR");
  const auto port = variables.number("MASTER_PORT", 1, 65535);
  if (found.address.empty() || !port) {
    fail(
        "{} started {} processes, and {} is not set; give all of them the address of rank 0's host and a free port "
        "there: "
        "MASTER_ADDR=host MASTER_PORT=29500{}",
        found.launcher, found.size, found.address.empty() ? "MASTER_ADDR" : "MASTER_PORT",
        found.launcher == "Open MPI" ? " (mpirun -x MASTER_ADDR -x MASTER_PORT)" : "");
  }
  found.port = *port;
}

}  // namespace

Environment read_environment(const GetVariable& get) {
  const Variables variables(get);
  auto chosen = read(kTorchrun, variables);
  const bool torchrun = variables.has("TORCHELASTIC_RUN_ID");
  if (chosen && torchrun) chosen->launcher = "torchrun";
  for (const auto& names : kOthers) {
    const auto other = read(names, variables);
    if (!other) continue;
    if (!chosen) {
      chosen = other;
    } else if (other->rank == chosen->rank && other->size == chosen->size) {
      complete(*chosen, *other);
    } else if (!torchrun) {  // which may itself have been started by the other
      fail(
          "this is rank {} of {} by {}, and rank {} of {} by {}; unset the variables of one of them", chosen->rank,
          chosen->size, chosen->launcher, other->rank, other->size, other->launcher);
    }
  }
  if (!chosen) return {};
  if (chosen->alone()) return *chosen;  // as one is that torchrun goes on with when the others' hosts are lost
  read_master(*chosen, variables);
  chosen->launcher_has_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  chosen->restarts = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMost).value_or(0);
  return *chosen;
}

Environment environment() {
  return read_environment([](const char* name) -> const char* { return std::getenv(name); });
}

void tell_launcher(const std::string& reason) {
  const auto* file = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (file == nullptr || *file == '\0') return;
  // Plain words: of a message with a traceback the agent shows the traceback only. Of several ranks it names the first.
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  std::ofstream(file) << nlohmann::json{{"message", as_utf8(reason)}, {"timestamp", now.count()}}.dump();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

}  // namespace sgdph::lab::dist
