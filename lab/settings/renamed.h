#pragma once

#include <optional>
#include <string>

#include "settings/settings.h"

namespace sgdph::lab::settings {

/// Optimizer settings of version 0.1 that have other names since the library's list of options gives them: beta1 and
/// beta2 are betas (Apollo's beta1 is beta), warmup_steps is warmup.

/// Today's name of a setting of an earlier version, if it is one.
std::optional<std::string> renamed(const std::string& key);

/// Gives the settings of a stored run today's names.
void rename_stored(Layer& layer);

/// Gives settings the names of version 0.1, one number a name: folders of runs are called after them. `defaults` are
/// what the values were compared with.
nlohmann::json with_first_names(nlohmann::json settings, const nlohmann::json& defaults);

}  // namespace sgdph::lab::settings
