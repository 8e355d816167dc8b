#pragma once

#include <cstdio>
#include <cstdlib>

/// A broken promise of a parser: stops the fuzzer, which keeps the input.
#define SGDPH_FUZZ_CHECK(condition)                                                \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)
