#include "command.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/names.h"
#include "base/terminal.h"
#include "dist/environment.h"
#include "option_values.h"
#include "settings/renamed.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace sgdph::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_fnames()) names.push_back(name.rfind("--", 0) == 0 ? name : "--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The innermost command that was given.
const CLI::App& chosen(const CLI::App& app) {
  for (const auto* command : app.get_subcommands()) return chosen(*command);
  return app;
}

/// The option of today for one of an earlier version.
std::optional<std::string> renamed_option(const std::string& flag) {
  lab::settings::Settings scratch;
  auto key = flag.substr(std::min(flag.size(), size_t{2}));
  std::replace(key.begin(), key.end(), '-', '_');
  const auto now = lab::settings::renamed(key);
  const auto fields = lab::settings::fields_of_all_optimizers(scratch);
  const auto* field = now ? lab::settings::find_field(fields, *now) : nullptr;
  return field == nullptr ? std::nullopt : std::optional(field->flags);
}

/// One line for a command line that does not parse.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = chosen(app);
  const auto place = &command == &app ? std::string("sgdph") : "sgdph " + command.get_name();
  const auto names = command_names(command);
  const auto extra = app.remaining(true);
  for (const auto& word : extra) {
    const auto name = word.substr(0, word.find('='));
    if (name.rfind('-', 0) != 0) continue;
    auto near = lab::suggestion(name, option_names(command));
    if (const auto now = renamed_option(name)) near = fmt::format("; it is {} now", *now);
    return fmt::format("unknown option '{}'{}; see '{} --help'", name, near, place);
  }
  if (!extra.empty()) {
    return fmt::format(
        "{} '{}'{}; see '{} --help'", names.empty() ? "unexpected word" : "unknown command", extra.front(),
        lab::suggestion(extra.front(), names), place);
  }
  std::string text = error.what();
  if (!names.empty()) text = fmt::format("a command is missing; there are {}", fmt::join(names, ", "));
  for (auto& letter : text) letter = letter == '\n' ? ' ' : letter;
  return fmt::format("{}; see '{} --help'", text, place);
}

/// Says why in one line, whatever the files and names that it quotes hold, to the launcher's summary too.
int end(int code, const std::string& reason) {
  const auto line = "sgdph: " + lab::one_line(reason);
  lab::print(stderr, "{}\n", line);
  lab::dist::tell_launcher(line);
  return code;
}

int parse_and_act(int argc, char** argv) {
  auto line = make_command_line();
  auto& app = *line.app;
  if (argc < 2) {
    lab::print("{}", app.help());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    lab::fail("{}", explain(app, error));
  }
  return line.actions.at(app.get_subcommands().front())();
}

}  // namespace

int run(int argc, char** argv) {
  try {
    const int code = parse_and_act(argc, argv);
    lab::check_output_arrived();
    return code;
  } catch (const lab::WriteError& error) {
    return end(1, error.what());
  } catch (const lab::UserError& error) {
    return end(2, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return end(1, fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::bad_alloc&) {
    return end(1, "out of memory; try a smaller --batch-size or --width, or fewer --workers");
  } catch (const c10::Error& error) {
    // Not the user's mistake, or one that should have been caught before.
    return end(1, fmt::format("internal error: {}", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return end(1, fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace sgdph::cli
