#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace sgdph::lab {

bool is_terminal(int descriptor);
/// Columns of the terminal on standard error; 80 if they are unknown.
size_t terminal_width();
/// Every line of the text cut to what a terminal shows without wrapping.
std::string fit_to_terminal(const std::string& text);

/// Says something on standard output or error. Work does not end because nobody listens any more: what a closed pipe or
/// a terminal that went away does not take is dropped.
void say(std::FILE* to, const std::string& text);

template <class... Args>
void print(std::FILE* to, fmt::format_string<Args...> text, Args&&... args) {
  say(to, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void print(fmt::format_string<Args...> text, Args&&... args) {
  say(stdout, fmt::format(text, std::forward<Args>(args)...));
}

/// Brings to standard output what was said there.
void show_now();

/// To be called before anything is said or opened: a closed pipe is then no signal, nor is a limit on files' sizes, and
/// what is said to a closed file goes nowhere.
void outlive_listeners();
/// A WriteError if something said on standard output was lost for another reason than a listener that left: a full
/// disk.
void check_output_arrived();

}  // namespace sgdph::lab
