#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sgdph::test {

/// The records of a run's log, all or those of a type.
inline std::vector<nlohmann::json> records_of(const std::filesystem::path& log, const std::string& type = "") {
  std::ifstream file(log);
  if (!file) throw std::runtime_error("there is no " + log.string());
  std::vector<nlohmann::json> records;
  for (std::string line; std::getline(file, line);) {
    auto record = nlohmann::json::parse(line);
    if (type.empty() || record.at("type") == type) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sgdph::test
