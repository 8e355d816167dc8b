#include "records/inspect_record.h"

#include "base/error.h"
#include "base/json.h"

namespace sgdph::lab::records {
namespace {

constexpr int kDepth = 6;  // of the deepest figure: a number in a list of a probe of a block

/// JSON has null for what is no number.
void fill_unknown(nlohmann::json& json, int depth) {
  if (json.is_null()) json = kUnknown;
  if (!json.is_structured() || depth == 0) return;
  for (auto& inner : json) fill_unknown(inner, depth - 1);
}

}  // namespace

InspectReport read_inspect_report(const std::filesystem::path& file, const std::string& text) {
  check_json(text, file.string());
  try {
    auto json = nlohmann::json::parse(text);
    fill_unknown(json.at("rows"), kDepth);
    fill_unknown(json.at("verdict"), kDepth);
    return json.get<InspectReport>();
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not the figures of sgdph inspect: {}", file.string(), error.what());
  }
}

}  // namespace sgdph::lab::records
