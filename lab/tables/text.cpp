#include "tables/text.h"

#include <fmt/format.h>

#include <cmath>

namespace sgdph::lab::tables {

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:.2f}x", ratio) : "-";
}

std::string decimals_text(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "-";
}

std::string difference_text(const std::optional<double>& difference) {
  return difference ? fmt::format("{:+.2f}", *difference) : "-";
}

std::string spread_text(double value, const std::optional<double>& deviation) {
  return deviation ? fmt::format("{:.2f} +- {:.2f}", value, *deviation) : fmt::format("{:.2f}", value);
}

std::string spread_text(const Statistic& figure) {
  if (figure.count == 0) return "-";
  return spread_text(figure.mean, figure.count > 1 ? std::optional(figure.deviation) : std::nullopt);
}

std::string number_text(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

std::string runs_text(size_t over, size_t planned, size_t diverged) {
  const auto text = fmt::format("{}/{}", over, planned);
  return diverged == 0 ? text : fmt::format("{}, {} diverged", text, diverged);
}

}  // namespace sgdph::lab::tables
