#pragma once

#include <sgdph/api.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What there is to know of the optimizers and their options, read off the lists the option classes keep themselves. No
// header of LibTorch is needed here: settings, command lines, documents and bindings are made from it.

namespace sgdph {

/// The finite numbers an option may take.
struct SGDPH_API Bound {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  ///< the bound itself is out of range
  bool high_open = false;

  bool holds(double value) const;
  /// As it follows "must": "be finite and at least 0", "lie in [0, 1)"; of a `whole` number, "be at least 0".
  std::string text(bool whole = false) const;
};
constexpr Bound at_least(double low) {
  return {low, std::numeric_limits<double>::infinity(), false, false};
}
constexpr Bound above(double low) {
  return {low, std::numeric_limits<double>::infinity(), true, false};
}
constexpr Bound between(double low, double high) {
  return {low, high, false, false};
}
/// [0, 1): the weight of an old value.
constexpr Bound fraction() {
  return {0, 1, false, true};
}

/// The value of an option. A name of an enumerator is a text in lower case.
using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<double>>;
using OptionValues = std::map<std::string, OptionValue>;
SGDPH_API std::string to_string(const OptionValue& value);

/// An option of an optimizer.
struct OptionInfo {
  std::string name;
  std::string help;
  OptionValue value;        ///< the default; where it is `unset`, a value of its type
  bool unset = false;       ///< by default other options decide, as `help` says
  bool shared = false;      ///< optimizer-wide: the same in every group
  bool enumerated = false;  ///< an enum class in C++
  Bound bound;              ///< of a number, and of each of several
  std::vector<std::string> choices;
};

struct OptimizerTraits {
  bool baseline = false;            ///< what times and memories are compared with
  bool measures_curvature = false;  ///< by Hessian-vector products: backward goes through the optimizer
  bool has_blocks = false;          ///< a step's cost depends on the block that is due
  double expected_cost = 1;         ///< of a step, in plain ones; for estimates of time only
};

/// An optimizer of the catalogue.
struct SGDPH_API OptimizerInfo {
  std::string name;        ///< to choose it by: sgd-ph
  std::string label;       ///< in tables: SGD-PH
  std::string class_name;  ///< in C++: sgdph::SGDPH
  std::string title;       ///< one line
  std::string source;      ///< whose it is
  OptimizerTraits traits;
  std::vector<OptionInfo> options;

  /// Null if there is none of this name.
  const OptionInfo* option(const std::string& name) const;
};

/// All of them, in the catalogue's order.
SGDPH_API const std::vector<OptimizerInfo>& optimizers();

/// A std::invalid_argument that lists the names if there is none of this one.
SGDPH_API const OptimizerInfo& optimizer_info(const std::string& name);

/// Every option's value: the given ones, checked alone and together, and for the rest what the optimizer would use. A
/// std::invalid_argument says what is wrong.
SGDPH_API OptionValues resolve_options(const std::string& optimizer, const OptionValues& given);

}  // namespace sgdph
