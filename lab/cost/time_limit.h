#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>

namespace sgdph::lab::cost {

/// When to stop: after so many rounds, or, if that is 0, when the time is used up and a few rounds are done.
struct TimeLimit {
  int64_t rounds = 0;
  double seconds = 0;
  bool every_position = false;  ///< without `rounds`: not before every block has had its turn
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimeLimit, rounds, seconds, every_position)

}  // namespace sgdph::lab::cost
