#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sgdph::lab {

/// What stands between commas; of an empty text, one empty word.
std::vector<std::string> words_between_commas(std::string_view text);

/// A list as the command line takes it: the words between commas without the blanks around them. A comma at the end is
/// passed over: it says that one word is a list ("4," is the seed 4, "4" so many seeds).
std::vector<std::string> words_of_list(std::string_view text);

/// The text without the blanks at both ends.
std::string_view trimmed(std::string_view text);

/// Refuses a list that holds something more than once: "--opts: adam is named twice".
template <class T>
void check_distinct(const std::string& option, const std::vector<T>& list) {
  for (auto place = list.begin(); place != list.end(); ++place) {
    if (std::find(list.begin(), place, *place) != place) fail("{}: {} is named twice", option, *place);
  }
}

/// The number that the whole word is, or nothing.
template <class T>
std::optional<T> number_from(std::string_view word) {
  T value{};
  const auto* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || word.empty()) return std::nullopt;
  return value;
}

/// "42 s", "3 min 05 s", "2 h 10 min"; a begun second counts.
std::string duration_text(double seconds);

/// Of time that was measured: "1.1 s", "3 min 05 s".
std::string measured_time_text(double seconds);

/// A path as a word of a shell's command: in quotes if it has letters that mean something there.
std::string shell_word(const std::string& word);

/// "1 run", "2 runs".
std::string count_text(size_t count, const std::string& thing);

}  // namespace sgdph::lab
