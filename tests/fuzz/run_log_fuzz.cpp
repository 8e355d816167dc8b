// The log of a run, which is JSON lines: whatever the text, records whose whole lines come back when they are written
// anew, figures of a run, or a UserError of one line that says where.

#include "base/json.h"
#include "fuzz.h"
#include "records/inspect_record.h"
#include "records/run_log.h"
#include "records/run_record.h"

namespace sgdph::lab::settings {
// Of the settings' room a record needs this alone.
std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}
}  // namespace sgdph::lab::settings

using namespace sgdph::lab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refused_in_one_line(
      [&] {
        const auto lines = records::parse_log(text, "fuzz");
        std::string again;
        for (const auto& line : lines) again += line.dump() + "\n";
        SGDPH_FUZZ_CHECK(records::parse_log(again, "fuzz") == lines);
        const auto run = records::run_record(lines, "fuzz");
        SGDPH_FUZZ_CHECK(run.epochs.size() + run.evals.size() <= lines.size());
        for (const auto* key : {"cpu", "seed", "started"}) static_cast<void>(run.header_text(key));
      },
      "fuzz");
  refused_in_one_line([&] { records::read_inspect_report("fuzz", text); }, "fuzz");
  return 0;
}
