#pragma once

#include <functional>
#include <map>
#include <memory>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace sgdph::cli {

/// What a command does once its options are read; the exit code.
using Action = std::function<int()>;

/// An entry of the table of commands. `setup` adds options to the command's app and says what to run.
struct Command {
  const char* name;
  const char* summary;
  Action (*setup)(CLI::App& app);
  bool computes = false;  ///< with LibTorch's threads
};

/// Constants, which can be looked at before anything of the program has begun.
struct CommandTable {
  const Command* first;
  const Command* last;
  const Command* begin() const { return first; }
  const Command* end() const { return last; }
};
CommandTable commands();

/// The whole command line, built from the table: what is parsed, and what completion and manual page are made from.
struct CommandLine {
  std::shared_ptr<CLI::App> app;
  std::map<const CLI::App*, Action> actions;
};
CommandLine make_command_line();

/// The whole command: reads the command line, does what it says and gives the exit code. No exception leaves it: 2 is
/// a mistake in the input and 1 any other failure, each with one line on standard error.
int run(int argc, char** argv);

Action setup_train(CLI::App& app);
Action setup_eval(CLI::App& app);
Action setup_compare(CLI::App& app);
Action setup_reproduce(CLI::App& app);
Action setup_cost(CLI::App& app);
Action setup_scale(CLI::App& app);
Action setup_inspect(CLI::App& app);
Action setup_report(CLI::App& app);
Action setup_data(CLI::App& app);
Action setup_list(CLI::App& app);
Action setup_completion(CLI::App& app);
Action setup_man(CLI::App& app);

}  // namespace sgdph::cli
