#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab {

/// What stands between commas; of an empty text, one empty word.
std::vector<std::string> words_between_commas(std::string_view text);

/// The number that the whole word is, or nothing.
template <class T>
std::optional<T> number_from(std::string_view word) {
  T value{};
  const auto* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || word.empty()) return std::nullopt;
  return value;
}

}  // namespace sgdph::lab
