#include "tables/svg.h"

#include "base/escape.h"

#include <fmt/format.h>

namespace sgdph::lab::tables::svg {
namespace {

constexpr const char* kReaderColours =
    "svg{--ink:#1f2328;--soft:#d8dee4;--paper:#ffffff}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#3d444d;--paper:#0d1117}}";

/// The classes that every picture has.
std::string common_style(Colours colours) {
  const bool fixed = colours == Colours::Print;
  return fmt::format(
      "{}text{{fill:{};font:12px sans-serif}}.title{{font-size:14px;font-weight:bold}}.paper{{fill:{}}}"
      ".grid{{stroke:{}}}.axis{{stroke:{}}}",
      fixed ? "" : kReaderColours, fixed ? "#1f2328" : "var(--ink)", fixed ? "#ffffff" : "var(--paper)",
      fixed ? "#d8dee4" : "var(--soft)", fixed ? "#1f2328" : "var(--ink)");
}

}  // namespace

std::string open(double width, double height, const std::string& title, const std::string& style, Colours colours) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\">\n<title>{2}</title>\n<style>{3}{4}</style>\n"
      "<rect class=\"paper\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
      width, height, escape_html(title), common_style(colours), style);
}

std::string close() {
  return "</svg>\n";
}

std::string text(double x, double y, const char* anchor, const std::string& words, const std::string& attributes) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, attributes, escape_html(words));
}

std::string line(const char* kind, double x1, double y1, double x2, double y2, const std::string& attributes) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"{}/>\n", kind, x1, y1, x2, y2,
      attributes);
}

}  // namespace sgdph::lab::tables::svg
