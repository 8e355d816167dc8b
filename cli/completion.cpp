#include "command.h"

#include "base/terminal.h"
#include "option_values.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <sstream>

namespace sgdph::cli {
namespace {

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : fmt::format("{} {}", path, name);
}

/// Calls `visit(path, app)` for every command, the program itself first; the path of "data fetch" is that.
void each_command(
    const CLI::App& app, const std::string& path,
    const std::function<void(const std::string&, const CLI::App&)>& visit) {
  visit(path, app);
  for (const auto* command : commands_of(app)) {
    each_command(*command, joined(path, command->get_name()), visit);
  }
}

std::vector<std::string> words_of(const CLI::App& app) {
  auto words = command_names(app);
  for (const auto& option : options_of(app)) {
    const auto& add = option.names.empty() ? option.words : option.names;  // a positional by its values
    words.insert(words.end(), add.begin(), add.end());
  }
  words.emplace_back("--help");
  return words;
}

void print_bash(const CLI::App& app) {
  lab::print(
      "# bash completion of sgdph; load it with: source <(sgdph completion bash)\n"
      "_sgdph() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} path='' word words=''\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$path $word\" in\n");
  each_command(app, "", [&](const std::string& path, const CLI::App& command) {
    for (const auto& name : command_names(command)) {
      lab::print("      '{} {}') path='{}' ;;\n", path, name, joined(path, name));
    }
  });
  lab::print("    esac\n  done\n  case \"$path $previous\" in\n");
  each_command(app, "", [&](const std::string& path, const CLI::App& command) {
    for (const auto& option : options_of(command)) {
      if (option.value.empty() || option.names.empty()) continue;
      std::vector<std::string> patterns;
      for (const auto& name : option.names) patterns.push_back(fmt::format("'{} {}'", path, name));
      lab::print(
          "    {}) {} ;;\n", fmt::join(patterns, "|"),
          option.takes_path
              ? "COMPREPLY=($(compgen -f -- \"$current\")); return"
              : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\")); return", fmt::join(option.words, " ")));
    }
  });
  lab::print("  esac\n  case \"$path\" in\n");
  each_command(app, "", [&](const std::string& path, const CLI::App& command) {
    lab::print("    '{}') words='{}' ;;\n", path, fmt::join(words_of(command), " "));
  });
  lab::print(
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -F _sgdph sgdph\n");
}

void print_zsh(const CLI::App& app) {
  lab::print(
      "#compdef sgdph\n# zsh completion of sgdph; load it with: source <(sgdph completion zsh)\n"
      "autoload -U +X bashcompinit && bashcompinit\n");
  print_bash(app);
}

void print_fish(const CLI::App& app) {
  lab::print("# fish completion of sgdph; load it with: sgdph completion fish | source\n");
  each_command(app, "", [&](const std::string& path, const CLI::App& command) {
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    std::istringstream words(path);
    for (std::string word; words >> word;) {
      condition += (condition.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") + word;
    }
    for (const auto* sub : commands_of(command)) {
      lab::print("complete -c sgdph -f -n '{}' -a {} -d \"{}\"\n", condition, sub->get_name(), sub->get_description());
    }
    for (const auto& option : options_of(command)) {
      if (option.names.empty()) continue;
      std::string names;
      for (const auto& name : option.names) {
        names += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const auto value = option.value.empty() ? ""
                         : option.takes_path  ? " -r -F"
                                              : fmt::format(" -x -a '{}'", fmt::join(option.words, " "));
      lab::print("complete -c sgdph -n '{}'{}{} -d \"{}\"\n", condition, names, value, option.help);
    }
  });
}

}  // namespace

Action setup_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("{bash,zsh,fish}")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  return [shell] {
    const auto line = make_command_line();
    if (*shell == "bash") print_bash(*line.app);
    if (*shell == "zsh") print_zsh(*line.app);
    if (*shell == "fish") print_fish(*line.app);
    return 0;
  };
}

}  // namespace sgdph::cli
