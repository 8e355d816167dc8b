#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tables/statistics.h"

/// How figures are written in tables.
namespace sgdph::lab::tables {

/// "1.33x"; "-" for what is not known: 0, or no number.
std::string ratio_text(double ratio);
/// "0.83"; "-" for no number.
std::string decimals_text(double value, int decimals = 2);
/// "67 %" of a share from 0 to 1; "-" for no number.
std::string percent_text(double share);
/// "+1.25"; "-" for none.
std::string difference_text(const std::optional<double>& difference);
/// "77.96 +- 0.30", without a deviation if there is none.
std::string spread_text(double value, const std::optional<double>& deviation);
/// The same of a mean; "-" of nothing.
std::string spread_text(const Statistic& figure);

/// Every digit, for programs; nothing for what is not known.
std::string number_text(const std::optional<double>& value);

/// "3/5, 1 diverged": runs that are over, and those planned.
std::string runs_text(size_t over, size_t planned, size_t diverged);

}  // namespace sgdph::lab::tables
