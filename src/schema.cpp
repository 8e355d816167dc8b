#include <sgdph/schema.h>

#include <cmath>
#include <sstream>

namespace sgdph {

bool Bound::holds(double value) const {
  const bool above_low = low_open ? value > low : value >= low;
  const bool below_high = high_open ? value < high : value <= high;
  return above_low && below_high && std::isfinite(value);
}

std::string Bound::text(bool whole) const {
  std::ostringstream text;
  if (std::isfinite(low) && std::isfinite(high)) {
    text << "lie in " << (low_open ? '(' : '[') << low << ", " << high << (high_open ? ')' : ']');
  } else if (!std::isfinite(low) && !std::isfinite(high)) {
    text << "be finite";
  } else {
    text << (whole ? "be" : "be finite and");
    if (std::isfinite(low)) text << (low_open ? " greater than " : " at least ") << low;
    if (std::isfinite(high)) text << (high_open ? " less than " : " at most ") << high;
  }
  return text.str();
}

std::string to_string(const OptionValue& value) {
  std::ostringstream text;
  if (const auto* flag = std::get_if<bool>(&value)) {
    text << (*flag ? "true" : "false");
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    text << *whole;
  } else if (const auto* number = std::get_if<double>(&value)) {
    text << *number;
  } else if (const auto* word = std::get_if<std::string>(&value)) {
    text << *word;
  } else {
    const auto& numbers = std::get<std::vector<double>>(value);
    for (size_t i = 0; i < numbers.size(); ++i) text << (i > 0 ? ", " : "(") << numbers[i];
    text << (numbers.empty() ? "()" : ")");
  }
  return text.str();
}

const OptionInfo* OptimizerInfo::option(const std::string& name) const {
  for (const auto& option : options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace sgdph
