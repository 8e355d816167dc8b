#pragma once

#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "dist/roster.h"
#include "settings/recipe.h"

namespace sgdph::lab::train {

/// Fits settings to a process among others: their number, its share of the host's threads and its GPU. Refuses a
/// number of ranks that was asked for and is not there.
void take_environment(settings::Settings& settings, const dist::Environment& environment, bool ranks_given);

/// What ranks must agree about: versions, and of resolved settings all that decides the result, or when ranks meet.
dist::Facts facts_of(const settings::Settings& settings);
/// The same of settings as they were given.
dist::Facts facts_of(const settings::Sources& given);
/// What ranks must agree about in their data, which each of them reads for itself.
dist::Facts facts_of(const data::Dataset& images, const std::string& kind);
/// The versions alone.
dist::Facts version_facts();

/// Seconds until a silent rank is given up: as it was given, or as in the run at `path`, where there is one.
double timeout_of(const settings::Sources& given, const std::string& path = "");

/// Settings of a run that goes on with another number of ranks: every step keeps its images, so another number of
/// batches is accumulated; or batches have another size, if the given settings say so. Refuses what does not add up.
/// Returns the run's settings as they would stand for these ranks.
settings::Settings on_other_ranks(const settings::Settings& stored, settings::Settings& given, bool batches_given);

}  // namespace sgdph::lab::train
