#include "base/json.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace sgdph::lab {
namespace {

constexpr int kMaxDepth = 64;

/// The number at the beginning of the text, as far as it looks like one.
std::string number_at(std::string_view text) {
  constexpr std::string_view kLetters = "0123456789+-.eE";
  return std::string(text.substr(0, std::min(text.find_first_not_of(kLetters), text.size())));
}

bool fits(const std::string& number) {
  if (number.find_first_of(".eE") == std::string::npos) return number == "-" || number_from<int64_t>(number);
  return std::isfinite(std::strtod(number.c_str(), nullptr));
}

}  // namespace

void check_json(std::string_view text, const std::string& file, size_t line) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) fail("{}:{}: nested more than {} deep", file, line, kMaxDepth);
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const auto number = number_at(text.substr(i));
      if (!fits(number)) fail("{}:{}: the number {} is too large", file, line, printable(number));
      i += number.size() - 1;
    }
  }
}

}  // namespace sgdph::lab
