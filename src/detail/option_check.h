#pragma once

#include <c10/util/Exception.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

namespace sgdph::detail {

/// Checks of option values; the message names option, value, bound and whose options these are. Each refuses NaN.
struct OptionCheck {
  const std::string& where;

  void at_least(const char* option, double value, double bound) const {
    TORCH_CHECK(
        value >= bound && std::isfinite(value), where, ": ", option, " must be finite and at least ", bound, ", got ",
        value);
  }
  void positive(const char* option, double value) const {
    TORCH_CHECK(
        value > 0 && std::isfinite(value), where, ": ", option, " must be finite and greater than 0, got ", value);
  }
  /// In [0, 1): the weight of an old value.
  void fraction(const char* option, double value) const {
    TORCH_CHECK(value >= 0 && value < 1, where, ": ", option, " must lie in [0, 1), got ", value);
  }
  /// One of the enumerators from 0 to `last`; an archive or a cast may hold another number.
  template <class Enum>
  void enumerator(const char* option, Enum value, Enum last) const {
    const auto number = static_cast<int64_t>(value);
    TORCH_CHECK(
        number >= 0 && number <= static_cast<int64_t>(last), where, ": ", option,
        " must be one of its named values, got ", "number ", number);
  }
  void betas(const std::tuple<double, double>& value) const {
    fraction("betas[0]", std::get<0>(value));
    fraction("betas[1]", std::get<1>(value));
  }
};

}  // namespace sgdph::detail
