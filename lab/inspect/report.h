#pragma once

#include <string>

#include "records/inspect_record.h"
#include "tables/presentation.h"

namespace sgdph::lab::inspect {

/// For readers what was looked at, the blocks, the probes, the verdict. The flat table is of blocks. JSON has
/// everything, channel by channel.
tables::Presentation present(const records::InspectReport& report);

}  // namespace sgdph::lab::inspect
