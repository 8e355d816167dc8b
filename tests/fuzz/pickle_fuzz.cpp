// The pickle reader: whatever the bytes, values whose texts lie within them and whose parts are what their kind says,
// or a DamagedFile of one line.

#include "formats/bytes.h"
#include "formats/pickle.h"
#include "fuzz.h"

#include <set>

namespace {

using Pickle = sgdph::lab::formats::Pickle;
using Kind = Pickle::Kind;

bool within(std::string_view part, std::string_view bytes) {
  return part.empty() || (part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size());
}

void check_value(const Pickle::Value& value, std::string_view bytes) {
  SGDPH_FUZZ_CHECK(within(value.text, bytes) && within(value.name, bytes));
  switch (value.kind) {
    case Kind::Tuple:
    case Kind::List: break;
    case Kind::Dict: SGDPH_FUZZ_CHECK(value.parts.size() % 2 == 0); break;
    case Kind::Call: SGDPH_FUZZ_CHECK(value.parts.size() == 2); break;
    case Kind::Persistent: SGDPH_FUZZ_CHECK(value.parts.size() == 1); break;
    default: SGDPH_FUZZ_CHECK(value.parts.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Pickle pickle(bytes);
    // Values may hold each other in a circle.
    std::set<const Pickle::Value*> seen{&pickle.top()};
    std::vector<const Pickle::Value*> left{&pickle.top()};
    while (!left.empty()) {
      const auto* value = left.back();
      left.pop_back();
      check_value(*value, bytes);
      for (const auto* part : value->parts) {
        SGDPH_FUZZ_CHECK(part != nullptr);
        if (seen.insert(part).second) left.push_back(part);
      }
    }
  } catch (const sgdph::lab::formats::DamagedFile& error) {
    SGDPH_FUZZ_CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
