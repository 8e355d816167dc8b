#pragma once

#include <string>
#include <string_view>

namespace sgdph::lab {

/// Text as HTML and SVG take it, in elements and in attributes between double quotes.
std::string escape_markup(std::string_view text);

}  // namespace sgdph::lab
