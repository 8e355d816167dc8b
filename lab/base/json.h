#pragma once

#include <string>
#include <string_view>

namespace sgdph::lab {

/// Refuses, with file and line, JSON that would be read as something else than it says, or not at all: whole numbers
/// beyond 64 bits with a sign, numbers beyond all floats, nesting that would exhaust the stack. What is no JSON passes:
/// the parser says more of it. `line`: the number of the text's first one in the file.
void check_json(std::string_view text, const std::string& file, size_t line = 1);

}  // namespace sgdph::lab
