#include "support/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/paths.h"

namespace sgdph::test {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(kGoldenDir) / "netA";

}  // namespace

nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(kFolder / (name + ".json"));
  TORCH_CHECK(file, "golden file ", name, " is missing");
  return nlohmann::json::parse(file);
}

at::Tensor golden_tensor(const nlohmann::json& array) {
  const auto data = array.at("data").get<std::vector<double>>();
  return torch::tensor(data, torch::kFloat64).view(array.at("shape").get<std::vector<int64_t>>());
}

at::Tensor golden_tensor(const nlohmann::json& list, const std::string& name) {
  for (const auto& entry : list) {
    if (entry.at("name") == name) return golden_tensor(entry);
  }
  TORCH_CHECK(false, "no golden array is named ", name);
}

std::vector<std::string> golden_settings() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    if (file.path().stem() != "problem") names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sgdph::test
