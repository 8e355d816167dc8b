#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "report/tables.h"

namespace sgdph::lab {

constexpr const char* kProbeTitle = "What each probe holds";
constexpr const char* kProbeWords =
    "SGD-PH's running estimate with each probe against the block's diagonal, weights and batch standing still. error: "
    "norm of the difference relative to the diagonal's. cosine, same sign: of the estimate and the diagonal.";

/// Whatever an inspection says of its blocks: a column for each key. Lists are left out.
Table block_table(const nlohmann::ordered_json& blocks);
/// A row for each block, and for each probe its error, cosine and share of signs; no rows if no block has probes.
Table probe_table(const nlohmann::ordered_json& blocks);
/// What stands beside the blocks: plain values.
Table inspection_facts(const nlohmann::ordered_json& facts);
/// What an inspection concludes, in its own words; empty if it does not.
std::string verdict_text(const FoundInspection& inspection);

}  // namespace sgdph::lab
