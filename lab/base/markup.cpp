#include "base/markup.h"

#include <fmt/format.h>

namespace sgdph::lab {

std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const auto letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string svg_text(double x, double y, const char* anchor, std::string_view text, std::string_view extra) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, extra, escape_markup(text));
}

std::string svg_line(const char* kind, double x1, double y1, double x2, double y2, std::string_view extra) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"{}/>\n", kind, x1, y1, x2, y2, extra);
}

}  // namespace sgdph::lab
