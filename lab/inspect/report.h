#pragma once

#include <string>

#include "records/inspect_record.h"
#include "tables/presentation.h"

namespace sgdph::lab {

/// For readers what was looked at, the blocks, the probes, the verdict. The flat table is of blocks. JSON has
/// everything, channel by channel.
Presentation present(const InspectReport& report);

}  // namespace sgdph::lab
