#include "command.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "base/text.h"
#include "evaluate_path.h"
#include "models/models.h"
#include "settings_options.h"
#include "train/resolve.h"
#include "train/trainer.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace sgdph::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  SettingsOptions settings;
  std::string output_dir;
  std::string resume;
  std::string progress = "auto";
  bool test_only = false;
  bool dry_run = false;
};

const std::map<std::string, lab::ProgressStyle> kStyles{
    {"auto", lab::ProgressStyle::Auto},
    {"bar", lab::ProgressStyle::Bar},
    {"lines", lab::ProgressStyle::Lines},
    {"machine", lab::ProgressStyle::Machine},
    {"quiet", lab::ProgressStyle::Quiet}};

/// The folder of the run that --resume means. A checkpoint file must be the newest: a run has one history.
fs::path folder_to_resume(const std::string& path) {
  if (!fs::exists(path)) lab::fail("--resume: {} does not exist", path);
  if (fs::is_directory(path)) return path;
  const auto file = lab::formats::read_checkpoint(path);
  auto folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const auto all = lab::train::checkpoints_in(folder);
  if (!all.empty() && !fs::equivalent(all.front(), path)) {
    lab::fail(
        "--resume: {} is not the newest checkpoint of its run ({} is); remove the newer ones, or start a new run with "
        "--init {}",
        path, all.front().filename().string(), path);
  }
  return folder;
}

/// The run's own settings with recipe, file and options on top; only what leaves the result alone may differ.
lab::settings::Settings settings_to_resume(const TrainOptions& options, const lab::settings::Settings& stored) {
  auto sources = options.settings.sources();
  sources.recipes.insert(
      sources.recipes.begin(), lab::settings::parse_recipe(lab::settings::to_toml(stored), "the run's settings"));
  auto settings = lab::train::resolve(lab::settings::combine(sources));
  lab::train::check_same_run(stored, settings);
  return settings;
}

int64_t used(int64_t images, int64_t limit) {
  return limit > 0 ? std::min(images, limit) : images;
}

void introduce(const lab::train::RunParts& parts, const fs::path& folder, lab::Progress& progress) {
  progress.line(settings_text(parts.settings));
  const auto about = parts.optimizer->describe();
  progress.line(fmt::format(
      "{} with {} parameters{}; {} training and {} test images; writing to {}", parts.settings.model,
      lab::models::count_parameters(*parts.model), about.empty() ? "" : ", " + about,
      used(parts.data.train->size(), parts.settings.train_limit),
      used(parts.data.test->size(), parts.settings.test_limit), folder.string()));
}

int conclude(
    lab::train::Trainer& trainer, lab::train::RunEnd outcome, const fs::path& folder, lab::Progress& progress) {
  switch (outcome) {
    case lab::train::RunEnd::Finished:
      progress.line(fmt::format(
          "finished: test accuracy {:.2f} % (best {:.2f} % in epoch {}), {} of training; weights for Python in {}",
          trainer.log().records().back().at("test_top1").get<double>(), trainer.state().best_top1,
          trainer.state().best_epoch, lab::duration_text(trainer.state().train_seconds),
          (folder / "model.pt").string()));
      return 0;
    case lab::train::RunEnd::Interrupted:
      lab::print(stderr, "sgdph: {}; continue with: sgdph train --resume {}\n", trainer.message(), folder.string());
      return lab::kInterrupted;
    case lab::train::RunEnd::Diverged: lab::print(stderr, "sgdph: {}\n", trainer.message()); return 1;
  }
  return 1;
}

int run(const TrainOptions& options) {
  lab::Progress progress(kStyles.at(options.progress));
  if (!options.resume.empty()) {
    const auto path = folder_to_resume(options.resume);
    if (!options.output_dir.empty() && fs::weakly_canonical(options.output_dir) != fs::weakly_canonical(path)) {
      lab::fail("--output-dir: a run is continued in its own folder {}, not in {}", path.string(), options.output_dir);
    }
    auto folder = lab::train::RunFolder::open(path);
    const bool begun = !lab::train::checkpoints_in(path).empty();
    auto parts = lab::train::prepare_run(settings_to_resume(options, folder.settings()), begun);
    lab::train::Trainer trainer(std::move(parts), std::move(folder), progress);
    progress.line(fmt::format("continuing {} after step {}", path.string(), trainer.state().step));
    return conclude(trainer, trainer.run(), path, progress);
  }
  auto settings = lab::settings::combine(options.settings.sources());
  auto name = fmt::format("runs/{}-{}-{}-seed{}", settings.dataset, settings.model, settings.opt, settings.seed);
  const fs::path path = options.output_dir.empty() ? fs::path(name) : fs::path(options.output_dir);
  if (!options.dry_run) lab::train::RunFolder::check_free(path);
  auto parts = lab::train::prepare_run(settings);
  introduce(parts, path, progress);
  if (options.dry_run) return 0;
  auto folder = lab::train::RunFolder::create(path, parts.settings);
  lab::train::Trainer trainer(std::move(parts), std::move(folder), progress);
  try {
    return conclude(trainer, trainer.run(), path, progress);
  } catch (const lab::UserError&) {
    // Bad input that shows only when it is read, such as a damaged image, leaves no run behind.
    trainer.folder().discard_unless_begun();
    throw;
  }
}

}  // namespace

Action setup_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  options->settings.add_to(app);
  const auto* group = "Run";
  app.add_option("--output-dir", options->output_dir, "folder of the run; by default runs/DATASET-MODEL-OPT-seedN")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--resume", options->resume, "continue the run in this folder (or of this checkpoint)")
      ->type_name("PATH")
      ->group(group);
  app.add_flag("--test-only", options->test_only, "only evaluate the checkpoint of --resume")->group(group);
  app.add_flag("--dry-run", options->dry_run, "check everything, print the settings, write nothing")->group(group);
  app.add_option("--progress", options->progress, "how to show progress")
      ->check(CLI::IsMember(kStyles).description(""))
      ->default_str("auto")
      ->type_name("{auto,bar,lines,machine,quiet}")
      ->group(group);
  return [options] {
    if (!options->test_only) return run(*options);
    if (options->resume.empty()) lab::fail("--test-only: give the run or checkpoint with --resume");
    return evaluate_path(options->resume, options->settings);
  };
}

}  // namespace sgdph::cli
