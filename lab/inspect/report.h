#pragma once

#include <string>
#include <vector>

#include "records/inspect_record.h"
#include "tables/document.h"

namespace sgdph::lab::inspect {

/// Whether the blocks are diagonal, as the paper claims: figures and a sentence.
records::Verdict verdict_of(const std::vector<records::BlockRow>& rows);

/// For readers what was looked at, the blocks, the probes, the verdict. The flat table is of blocks. JSON has
/// everything, channel by channel.
tables::Presentation present(const records::InspectReport& report);

}  // namespace sgdph::lab::inspect
