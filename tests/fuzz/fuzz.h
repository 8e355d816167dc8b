#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

/// A broken promise of a parser: stops the fuzzer, which keeps the input.
#define SGDPH_FUZZ_CHECK(condition)                                                \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

/// Runs it; what it refuses, it refuses by that error, in one line that begins with `where`.
template <class Error = sgdph::lab::UserError, class Function>
void refused_in_one_line(const Function& function, std::string_view where = "") {
  try {
    function();
  } catch (const Error& error) {
    const std::string_view text(error.what());
    SGDPH_FUZZ_CHECK(text.find('\n') == std::string_view::npos && text.substr(0, where.size()) == where);
  }
}
