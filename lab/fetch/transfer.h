#pragma once

#include <cstdint>
#include <string>

namespace sgdph::lab::fetch {

/// How far and how fast a download is: "68.1 of 161.2 MB  3.4 MB/s". What was there before counts for how far, not for
/// how fast.
class TransferText {
 public:
  /// `total` is 0 if it is not known; `now` in seconds on a clock that never jumps.
  std::string at(int64_t bytes, int64_t total, double now);

 private:
  int64_t begun_ = -1;
  double started_ = 0;
};

}  // namespace sgdph::lab::fetch
