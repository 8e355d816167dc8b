#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>

namespace sgdph::lab {

std::vector<std::string> words_between_commas(std::string_view text) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find(',', from), text.size());
    words.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

std::vector<std::string> words_of_list(std::string_view text) {
  auto words = words_between_commas(text);
  for (auto& word : words) word = std::string(trimmed(word));
  if (words.size() > 1 && words.back().empty()) words.pop_back();
  return words;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::max(0., seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string measured_time_text(double seconds) {
  return seconds < 59.95 ? fmt::format("{:.1f} s", seconds) : duration_text(std::round(seconds));
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char letter) {
    const auto c = static_cast<unsigned char>(letter);
    return c >= 0x80 || std::isalnum(c) != 0 || std::string_view("/._-+:,=@%").find(letter) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string count_text(size_t count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace sgdph::lab
