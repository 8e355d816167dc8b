#include "command.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "base/progress.h"
#include "base/terminal.h"
#include "data/datasets.h"
#include "fetch/download.h"
#include "fetch/fetch.h"
#include "fetch/verify.h"
#include "tables/table.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace sgdph::cli {
namespace {

constexpr int kNothingFetched = 1;

struct Options {
  std::string name;
  std::string path;
  std::string url;
  std::string checksum;
  bool keep_archive = false;
  bool quiet = false;
  bool decode = false;
};

double fraction(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

int list() {
  lab::tables::Table table{{"NAME", "PRESENT", "LOOKED FOR IN", "WHAT"}, {}};
  for (const auto& entry : lab::data::datasets()) {
    std::error_code error;
    const bool present = std::filesystem::is_directory(lab::data::data_folder(entry, ""), error);
    table.rows.push_back({entry.name, present ? "yes" : "no", entry.default_path, lab::data::description(entry)});
  }
  lab::print("{}", lab::tables::text_list(table));
  return 0;
}

int fetch(const Options& chosen) {
  lab::Progress progress;
  lab::fetch::FetchOptions options;
  options.root = chosen.path;
  options.url = chosen.url;
  options.checksum = chosen.checksum;
  options.keep_archive = chosen.keep_archive;
  options.quiet = chosen.quiet;
  options.say = [&](const std::string& line) { progress.line(line); };
  options.download.notice = options.say;
  lab::fetch::TransferText transfer;
  options.download.progress = [&](int64_t bytes, int64_t total) {
    progress.at(total > 0 ? fraction(bytes, total) : -1, transfer.at(bytes, total, lab::seconds_now()));
  };
  options.download.cancel = &lab::interrupt_flag();
  return lab::fetch::fetch(chosen.name, options).outcome == lab::fetch::FetchOutcome::Instructions ? kNothingFetched
                                                                                                   : 0;
}

int verify(const Options& chosen) {
  lab::Progress progress;
  lab::fetch::VerifyOptions options;
  options.decode = chosen.decode;
  options.progress = [&](int64_t images, int64_t total) {
    progress.at(fraction(images, total), fmt::format("{} of {} images", images, total));
  };
  options.cancel = &lab::interrupt_flag();
  const auto report = lab::fetch::verify(chosen.name, chosen.path, options);
  for (const auto& line : report.lines()) progress.line(line);
  return 0;
}

template <class Function>
int interruptible(Function function) {
  const lab::InterruptGuard guard;
  try {
    return function();
  } catch (const lab::fetch::Interrupted& e) {
    lab::print(stderr, "sgdph: {}\n", e.what());
    return lab::kInterrupted;
  }
}

}  // namespace

Action setup_data(CLI::App& app) {
  auto chosen = std::make_shared<Options>();
  app.require_subcommand(1);
  const auto all = lab::names_of(lab::data::datasets());
  const auto names = fmt::format("one of {}", fmt::join(all, ", "));
  const auto type = fmt::format("{{{}}}", fmt::join(all, ","));

  const auto* list_command = app.add_subcommand("list", "the data sets, where each is looked for, and which are there");

  auto* fetch_command =
      app.add_subcommand("fetch", "download a data set, or say how to get it (then the exit code is 1)");
  fetch_command->add_option("name", chosen->name, names)->required()->type_name(type);
  const auto holder = fmt::format("folder to hold it ({})", lab::data::kDataRoot);
  fetch_command->add_option("--data-path", chosen->path, holder)->type_name("DIR");
  fetch_command->add_option("--url", chosen->url, "another place of the archive: http, https or file");
  fetch_command->add_option("--checksum", chosen->checksum, "of that archive: md5:..., sha256:... or any");
  fetch_command->add_flag("--keep-archive", chosen->keep_archive, "do not remove the archive once it is unpacked");
  fetch_command->add_flag("-q,--quiet", chosen->quiet, "say nothing unless it fails");

  auto* verify_command = app.add_subcommand("verify", "check the files of a data set: form, labels, checksums");
  verify_command->add_option("name", chosen->name, names)->required()->type_name(type);
  verify_command->add_option("--data-path", chosen->path, "folder that holds it")->type_name("DIR");
  verify_command->add_flag("--decode", chosen->decode, "decode every image, not only headers");

  return [=] {
    if (list_command->parsed()) return list();
    return interruptible([&] { return fetch_command->parsed() ? fetch(*chosen) : verify(*chosen); });
  };
}

}  // namespace sgdph::cli
