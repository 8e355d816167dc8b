#pragma once

// LibTorch 1.x options hold its own variant, 2.x the standard one.
#if __has_include(<c10/util/variant.h>)
#include <c10/util/variant.h>
namespace sgdph::detail {
using c10::get_if;
}
#else
#include <variant>
namespace sgdph::detail {
using std::get_if;
}
#endif
