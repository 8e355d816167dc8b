#include <sgdph/partition.h>

#include <algorithm>
#include <iomanip>

namespace sgdph {

size_t Partition::blocks() const {
  return static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.second_order; }));
}

std::ostream& operator<<(std::ostream& out, const Partition& partition) {
  size_t width = 0;
  for (const auto& entry : partition.entries) width = std::max(width, entry.name.size());
  const auto flags = out.flags();
  for (const auto& entry : partition.entries) {
    out << std::left << std::setw(static_cast<int>(width)) << entry.name << "  "
        << (entry.second_order ? "second-order" : "first-order ") << "  " << entry.reason << '\n';
  }
  out.flags(flags);
  return out << partition.blocks() << " blocks among " << partition.entries.size() << " parameters\n";
}

}  // namespace sgdph
