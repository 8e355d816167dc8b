#include "report/reference.h"

#include "base/error.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace sgdph::lab::report {

std::vector<ReferenceFigure> read_references(const std::filesystem::path& file, const std::string& text) {
  std::vector<ReferenceFigure> figures;
  check_json(text, file.string());
  try {
    const auto json = nlohmann::json::parse(text);
    for (const auto& entry : json.at("figures")) {
      ReferenceFigure figure;
      figure.source = entry.at("source").get<std::string>();
      figure.value = entry.at("value").get<double>();
      if (entry.contains("deviation")) figure.deviation = entry.at("deviation").get<double>();
      for (const auto& run : entry.at("runs")) figure.runs.push_back(file.parent_path() / run.get<std::string>());
      figures.push_back(std::move(figure));
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a list of reference figures: {}", file.string(), error.what());
  }
  return figures;
}

}  // namespace sgdph::lab::report
