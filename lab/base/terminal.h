#pragma once

#include <string>

namespace sgdph::lab {

bool is_terminal(int descriptor);
/// Columns of the terminal on standard error; 80 if they are unknown.
size_t terminal_width();
/// Every line of the text cut to what a terminal shows without wrapping.
std::string fit_to_terminal(const std::string& text);

}  // namespace sgdph::lab
