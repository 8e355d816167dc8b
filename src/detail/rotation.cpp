#include <sgdph/detail/rotation.h>

#include <algorithm>

namespace sgdph::detail {

std::optional<size_t> Rotation::next(const std::vector<size_t>& members) const {
  if (members.empty()) return std::nullopt;
  const auto found = std::lower_bound(members.begin(), members.end(), cursor);
  return found == members.end() ? members.front() : *found;
}

void Rotation::pass(size_t member) {
  cursor = member + 1;
  ++turns;
}

void Rotation::leave() {
  --turns;
}

int64_t Rotation::exponent(const std::vector<size_t>& members) const {
  return turns / std::max<int64_t>(static_cast<int64_t>(members.size()), 1) + 1;
}

}  // namespace sgdph::detail
