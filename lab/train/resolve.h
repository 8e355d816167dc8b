#pragma once

#include "settings/settings.h"

namespace sgdph::lab::train {

/// Checks every name and fills in every default, so that the result says all a run depends on.
settings::Settings resolve(settings::Settings settings);
/// The first half: names are checked and defaults filled in, whether or not the values go together.
settings::Settings fill_in(settings::Settings settings);

/// Refuses options of the command line that would do nothing in a run of these settings. What a recipe sets for the
/// general case may.
void check_given(const settings::Layer& given, const settings::Settings& settings);

/// Settings that differ and may not, for a run that is to be continued: a UserError names the first. With `same_cost`
/// what decides time and memory may not differ either.
void check_same_run(const settings::Settings& stored, const settings::Settings& given, bool same_cost = false);

}  // namespace sgdph::lab::train
