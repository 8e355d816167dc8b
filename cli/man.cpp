#include "command.h"

#include "base/escape.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "option_values.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace sgdph::cli {
namespace {

std::string option_entry(const OptionText& option) {
  std::vector<std::string> names;
  for (const auto& name : option.names) names.push_back("\\fB" + lab::escape_man(name) + "\\fR");
  const auto value = option.value.empty() ? "" : " \\fI" + lab::escape_man(option.value) + "\\fR";
  auto help = lab::escape_man(option.help);
  if (!option.default_text.empty()) help += " (default " + lab::escape_man(option.default_text) + ")";
  return fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), value, help);
}

void print_command(const CLI::App& app, const std::string& name) {
  lab::print(".SS \"{}\"\n{}.\n", lab::escape_man(name), lab::escape_man(app.get_description()));
  for (const auto& option : options_of(app)) lab::print("{}", option_entry(option));
  for (const auto* command : commands_of(app)) print_command(*command, name + " " + command->get_name());
}

int print_manual() {
  const auto line = make_command_line();
  lab::print(".TH SGDPH 1 \"\" \"sgdph {}\" \"User Commands\"\n", lab::sgdph_version());
  lab::print(".SH NAME\nsgdph \\- train and compare networks with SGD with Partial Hessian and its rivals\n");
  lab::print(".SH SYNOPSIS\n");
  for (const auto* command : commands_of(*line.app)) {
    std::string words;
    for (const auto& option : options_of(*command)) {
      if (option.names.empty()) words += " \\fI" + lab::escape_man(option.value) + "\\fR";
    }
    std::vector<std::string> subs;
    for (const auto* sub : commands_of(*command)) subs.push_back(sub->get_name());
    if (!subs.empty()) words += fmt::format(" {}", fmt::join(subs, "|"));
    lab::print("\\fBsgdph {}\\fR{} [\\fIoptions\\fR]\n.br\n", command->get_name(), words);
  }
  lab::print(".SH COMMANDS\n");
  for (const auto* command : commands_of(*line.app)) print_command(*command, "sgdph " + command->get_name());
  lab::print(
      ".SH FILES\n.TP\nsettings.toml\nthe settings of a run; feed it back with \\fB\\-\\-config\\fR\n"
      ".TP\nlog.jsonl\na header, one record per epoch and an end record\n"
      ".TP\ncheckpoint\\-*.ckpt\nall that is needed to continue with the same bits\n"
      ".TP\nmodel.pt\nthe weights as a state dict for Python's torch.load\n");
  lab::print(
      ".SH EXIT STATUS\n0 done; 1 the run failed (the loss became non\\-finite, say); 2 bad input, nothing was "
      "written; "
      "130 interrupted, a checkpoint was written\n");
  return 0;
}

}  // namespace

Action setup_man(CLI::App& app) {
  return print_manual;
}

}  // namespace sgdph::cli
