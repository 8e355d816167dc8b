#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sgdph::lab {

/// The name nearest to `name` by edit distance (insertions, deletions, exchanges, swaps of neighbours), if it is near
/// enough to be a slip of the pen.
std::optional<std::string> nearest_name(const std::string& name, const std::vector<std::string>& names);

/// " (did you mean 'x'?)", or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& names);

/// Refuses a name that is not among `names`: "unknown model 'resnet81' (did you mean 'resnet18'?); there are ...".
void check_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names);

}  // namespace sgdph::lab
