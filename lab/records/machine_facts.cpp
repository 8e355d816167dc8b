#include "records/machine_facts.h"

#include "base/clock.h"
#include "base/machine.h"

namespace sgdph::lab::records {

MachineFacts machine_facts(const std::string& libtorch, int64_t threads) {
  return {cpu_name(), libtorch, sgdph_version(), time_stamp(), threads};
}

}  // namespace sgdph::lab::records
