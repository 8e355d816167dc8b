#include "base/markup.h"

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

}  // namespace sgdph::lab
