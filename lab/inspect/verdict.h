#pragma once

#include <string>
#include <vector>

#include "records/inspect_record.h"

namespace sgdph::lab::inspect {

records::Verdict verdict_of(const std::vector<records::BlockRow>& rows);

}  // namespace sgdph::lab::inspect
