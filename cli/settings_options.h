#pragma once

#include <functional>
#include <map>
#include <string>

#include "settings/recipe.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace sgdph::cli {

/// An option for every setting of a run, and --recipe and --config. Must live until the command has run.
class SettingsOptions {
 public:
  /// `wanted` chooses among the settings; all by default.
  void add_to(CLI::App& app, const std::function<bool(const lab::settings::Field&)>& wanted = nullptr);
  /// Without --recipe and --config.
  void add_fields(CLI::App& app, const std::function<bool(const lab::settings::Field&)>& wanted);

  /// What the command line gave, recipe and file read.
  lab::settings::Sources sources() const;
  /// The options alone.
  lab::settings::Layer given() const;
  bool has_files() const { return !recipe_.empty() || !config_.empty(); }

 private:
  std::string recipe_;
  std::string config_;
  std::map<std::string, std::string> words_;  ///< by key
  std::map<std::string, bool> flags_;
  std::map<std::string, CLI::Option*> options_;
};

/// Every setting as "key value" pairs, a paragraph for each part.
std::string settings_text(const lab::settings::Settings& settings);

}  // namespace sgdph::cli
