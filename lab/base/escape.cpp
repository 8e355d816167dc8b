#include "base/escape.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace sgdph::lab {
namespace {

/// Every letter as `spelling` gives it.
template <class Spelling>
std::string respelled(std::string_view text, Spelling spelling) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    const std::string_view other = spelling(letter);
    out += other.empty() ? std::string_view(&letter, 1) : other;
  }
  return out;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

}  // namespace

std::string escape_html(std::string_view text) {
  return respelled(text, [](char letter) {
    switch (letter) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      default: return "";
    }
  });
}

std::string escape_markdown(std::string_view text) {
  constexpr std::string_view kMarks = "\\`*_{}[]<>|#~&";
  std::string out;
  for (const char letter : text) {
    if (kMarks.find(letter) != std::string_view::npos) out += '\\';
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return out;
}

std::string escape_man(std::string_view text) {
  auto out = respelled(text, [](char letter) { return letter == '-' ? "\\-" : letter == '\\' ? "\\e" : ""; });
  return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

std::string escape_csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return '"' + respelled(text, [](char letter) { return letter == '"' ? "\"\"" : ""; }) + '"';
}

std::string escape_script(std::string_view json) {
  return respelled(json, [](char letter) {
    switch (letter) {
      case '<': return "\\u003c";
      case '>': return "\\u003e";
      case '&': return "\\u0026";
      default: return "";
    }
  });
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

std::string one_line(std::string_view text) {
  std::string shown;
  for (const auto c : text) {
    if (is_control(c)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string printable(std::string_view text) {
  constexpr size_t kShown = 80;
  const auto shown = one_line(text.substr(0, kShown));
  return text.size() > kShown ? shown + "..." : shown;
}

std::string slug_of(std::string_view text, const std::string& otherwise) {
  std::string slug;
  for (const auto any : text) {
    const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(any)));
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '.';
    if (plain) slug += letter;
    if (!plain && !slug.empty() && slug.back() != '-') slug += '-';
  }
  while (!slug.empty() && (slug.back() == '-' || slug.back() == '.')) slug.pop_back();
  return slug.empty() ? otherwise : slug.substr(0, 100);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string code;
  code.reserve(bytes.size() * 4 / 3 + 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) code += i + k > bytes.size() ? '=' : kDigits[bits >> (18U - 6U * k) & 63U];
  }
  return code;
}

std::string as_utf8(const std::string& text) {
  const auto dumped = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped).get<std::string>();
}

bool is_utf8(const std::string& text) {
  return as_utf8(text) == text;
}

}  // namespace sgdph::lab
