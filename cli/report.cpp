#include "command.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/terminal.h"
#include "report/report.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

struct ReportCommand {
  std::vector<std::string> places;
  std::string pack;
  std::string output;
  std::string title;
  std::string notes;
  std::string figures;
  std::string format = "html";
};

void print_notices(const lab::report::Collection& found) {
  for (const auto& notice : found.notices) lab::print(stderr, "sgdph: {}\n", lab::one_line(notice));
}

int run_pack(const ReportCommand& command) {
  const auto found = lab::report::collect({command.places.begin(), command.places.end()});
  lab::write_file_atomically(command.pack, {lab::report::pack(found)});
  print_notices(found);
  lab::print("{}\n", command.pack);
  return 0;
}

int run(const ReportCommand& command) {
  if (!command.pack.empty()) return run_pack(command);
  lab::report::ReportOptions options;
  options.places.assign(command.places.begin(), command.places.end());
  options.title = lab::as_utf8(command.title);
  options.notes = command.notes;
  options.figures = command.figures;
  options.output = command.output;
  options.format = lab::report::report_formats().at(command.format);
  const auto content = lab::report::read_report(options);
  const auto file = lab::report::write_report(content, options);
  print_notices(content.found);
  lab::print("{}\n", file.string());
  return 0;
}

}  // namespace

Action setup_report(CLI::App& app) {
  auto command = std::make_shared<ReportCommand>();
  auto& c = *command;
  app.add_option(
         "DIR", c.places,
         "folders of runs, comparisons, costs or inspections, and all below them; or files made with --pack")
      ->required()
      ->type_name("DIR");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto* pack = app.add_option("--pack", c.pack, "write the records to one file (NAME.jsonl) to keep, and no report")
                   ->type_name("FILE");
  app.add_option("-o,--output", c.output, "the file to write; by default report.html or report.md in the first folder")
      ->type_name("FILE");
  app.add_option("--title", c.title, "heading of the report; by default the first folder's name")->type_name("TEXT");
  app.add_option("--notes", c.notes, "Markdown to stand at the beginning; HTML in it is text")->type_name("FILE");
  app.add_option("--figures", c.figures, "also write each curve, and pictures of blocks, as SVG to this folder")
      ->type_name("DIR");
  app.add_option("--format", c.format, "html: one page that needs nothing else; markdown: tables as text")
      ->check(CLI::IsMember(lab::report::report_formats()).description(""))
      ->default_str(c.format)
      ->type_name("{html,markdown}");
  for (const auto* option : {"--output", "--title", "--notes", "--figures", "--format"}) {
    pack->excludes(app.get_option(option));
  }
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
