#include "base/words.h"

#include <algorithm>

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

}  // namespace sgdph::lab
