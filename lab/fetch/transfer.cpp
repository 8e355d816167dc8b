#include "fetch/transfer.h"

#include <fmt/format.h>

namespace sgdph::lab::fetch {
namespace {

constexpr double kMegabyte = 1e6;

}  // namespace

std::string TransferText::at(int64_t bytes, int64_t total, double now) {
  // A download that starts anew begins again here as well.
  if (begun_ < 0 || bytes < begun_) {
    begun_ = bytes;
    started_ = now;
  }
  const double speed = now > started_ ? static_cast<double>(bytes - begun_) / (now - started_) : 0;
  const auto rate = speed > 0 ? fmt::format("  {:.1f} MB/s", speed / kMegabyte) : "";
  const auto whole = total > 0 ? fmt::format(" of {:.1f}", static_cast<double>(total) / kMegabyte) : "";
  return fmt::format("{:.1f}{} MB{}", static_cast<double>(bytes) / kMegabyte, whole, rate);
}

}  // namespace sgdph::lab::fetch
