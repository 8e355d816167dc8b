#pragma once

#include <string_view>

namespace sgdph::lab {

/// A file of lab/report/page, compiled in. `chart.js` is Chart.js as Debian packages it, empty if there was none when
/// the program was built.
std::string_view page_file(std::string_view name);

}  // namespace sgdph::lab
