#pragma once

#include <string>
#include <vector>

namespace sgdph::lab {

/// What the lab knows of an optimizer: its settings are those of `keys`.
struct OptimizerInfo {
  std::string name;
  std::string label;  ///< in tables
  std::string title;  ///< one line for lists
  std::vector<std::string> keys;

  bool has(const std::string& key) const;
};

const std::vector<OptimizerInfo>& optimizer_infos();
std::vector<std::string> optimizer_names();
/// A UserError with the nearest name if there is none.
const OptimizerInfo& optimizer_info(const std::string& name);

}  // namespace sgdph::lab
