#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace sgdph::cli {

/// What completion and manual page need to know of an option.
struct OptionText {
  std::vector<std::string> names;  ///< --lr, -b; empty for a positional
  std::string value;               ///< NUMBER; empty for a flag
  std::string help;
  std::string default_text;
  std::vector<std::string> words;  ///< the values to choose from, if they are known
  bool takes_path = false;
};

/// The options of a command in order; the help option is left out.
std::vector<OptionText> options_of(const CLI::App& app);
std::vector<const CLI::App*> commands_of(const CLI::App& app);
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace sgdph::cli
