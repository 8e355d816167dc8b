#pragma once

#include <string>
#include <string_view>

namespace sgdph::lab {

/// Text as HTML and SVG take it, in elements and in attributes between double quotes.
std::string escape_markup(std::string_view text);

/// The pieces that pictures are made of.
std::string svg_text(double x, double y, const char* anchor, std::string_view text, std::string_view extra = "");
std::string svg_line(const char* kind, double x1, double y1, double x2, double y2, std::string_view extra = "");

}  // namespace sgdph::lab
