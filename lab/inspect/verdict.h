#pragma once

#include <string>
#include <vector>

#include "records/inspect_record.h"

namespace sgdph::lab {

Verdict verdict_of(const std::vector<BlockRow>& rows);

}  // namespace sgdph::lab
