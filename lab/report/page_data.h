#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"

namespace sgdph::lab::report {

/// The curves as JSON for the page's script, safe inside a script element: no letter of it can end that. Figures have
/// five digits.
std::string page_data(const std::vector<Comparison>& comparisons);

}  // namespace sgdph::lab::report
