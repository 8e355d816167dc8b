#include "command.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "base/text.h"
#include "dist/environment.h"
#include "dist/group.h"
#include "evaluate_path.h"
#include "models/models.h"
#include "settings_options.h"
#include "train/ranks.h"
#include "train/resolve.h"
#include "train/trainer.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace sgdph::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  SettingsOptions settings;
  std::string output_dir;
  std::string resume;
  std::string progress = "auto";
  bool auto_resume = false;
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
lab::settings::Settings settings_to_resume(
    const TrainOptions& options, const lab::settings::Settings& stored, const lab::dist::Environment& environment) {
  auto sources = options.settings.sources();
  sources.recipes.insert(
      sources.recipes.begin(), lab::settings::parse_recipe(lab::settings::to_toml(stored), "the run's settings"));
  auto settings = lab::settings::combine(sources);
  const auto given = options.settings.given();
  lab::train::take_environment(settings, environment, given.count("ranks") != 0);
  settings = lab::train::fill_in(settings);
  // The command that began the run names its own batches, and is given again where a launcher starts it again.
  const bool batches_given = settings.batch_size != stored.batch_size || settings.accumulate != stored.accumulate;
  lab::train::check_same_run(
      settings.ranks == stored.ranks ? stored : lab::train::on_other_ranks(stored, settings, batches_given), settings);
  lab::train::check_given(given, settings);
  return lab::train::resolve(settings);
}

int64_t used(int64_t images, int64_t limit) {
  return limit > 0 ? std::min(images, limit) : images;
}

void introduce(const lab::train::RunParts& parts, const fs::path& folder, lab::Progress& progress) {
  progress.line(settings_text(parts.settings));
  const auto about = parts.optimizer->describe();
  progress.line(fmt::format(
      "{} with {} parameters{}; {} training{} and {} test images; writing to {}", parts.settings.model,
      lab::models::count_parameters(*parts.model), about.empty() ? "" : ", " + about,
      used(parts.data.train->size(), parts.settings.train_limit),
      parts.data.validation ? fmt::format(", {} validation", parts.data.validation->size()) : "",
      used(parts.data.test->size(), parts.settings.test_limit), folder.string()));
}

/// What a finished run came to.
std::string accuracies(const lab::train::Trainer& trainer) {
  const auto& end = trainer.log().records().back();
  const auto figure = [&](const char* key) { return end.at(key).get<double>(); };
  const auto& state = trainer.state();
  const auto averaged =
      end.contains("ema_test_top1") ? fmt::format(", {:.2f} % with averaged weights", figure("ema_test_top1")) : "";
  if (!end.contains("val_top1")) {
    return fmt::format(
        "test accuracy {:.2f} % (best {:.2f} % in epoch {}){}", figure("test_top1"), state.best_top1, state.best_epoch,
        averaged);
  }
  return fmt::format(
      "test accuracy {:.2f} %, {:.2f} % with the weights of epoch {}, the best by validation ({:.2f} %, in {}){}",
      figure("test_top1"), figure("best_test_top1"), state.best_epoch, state.best_top1,
      trainer.folder().best().filename().string(), averaged);
}

int conclude(
    lab::train::Trainer& trainer, lab::train::RunEnd outcome, const fs::path& folder, lab::Progress& progress,
    bool speaks) {
  switch (outcome) {
    case lab::train::RunEnd::Finished:
      progress.line(fmt::format(
          "finished: {}, {} of training; weights for Python in {}", accuracies(trainer),
          lab::measured_time_text(trainer.state().train_seconds), trainer.folder().model().string()));
      return 0;
    case lab::train::RunEnd::Interrupted:
      if (speaks) {
        lab::print(
            stderr, "sgdph: {}; continue with: sgdph train --resume {}\n", trainer.message(),
            lab::shell_word(folder.string()));
      }
      return lab::kInterrupted;
    case lab::train::RunEnd::Diverged:
      if (speaks) lab::print(stderr, "sgdph: {}\n", trainer.message());
      lab::dist::tell_launcher("sgdph: " + trainer.message());
      return 1;
  }
  return 1;
}

/// What is to be done, as rank 0 finds it; the others need not see the folder.
struct Plan {
  fs::path path;
  bool resume = false;
  bool begun = false;  ///< has a checkpoint
  lab::settings::Settings stored;
};

void to_json(nlohmann::json& json, const Plan& plan) {
  json = {{"path", plan.path.string()}, {"resume", plan.resume}, {"begun", plan.begun}};
  if (plan.resume) json["settings"] = lab::settings::to_json(plan.stored);
}

void from_json(const nlohmann::json& json, Plan& plan) {
  plan.path = json.at("path").get<std::string>();
  json.at("resume").get_to(plan.resume);
  json.at("begun").get_to(plan.begun);
  if (plan.resume) plan.stored = lab::settings::settings_from_json(json.at("settings"), "the run's settings");
}

/// The folder is opened, and so held, if there is a run to go on with.
Plan make_plan(
    const TrainOptions& options, const lab::dist::Environment& environment,
    std::optional<lab::train::RunFolder>& folder) {
  Plan plan;
  if (!options.resume.empty()) {
    if (options.auto_resume) lab::fail("--auto-resume: --resume says already what to continue; give one of them");
    plan.path = folder_to_resume(options.resume);
    plan.resume = true;
    if (!options.output_dir.empty() && fs::weakly_canonical(options.output_dir) != fs::weakly_canonical(plan.path)) {
      lab::fail(
          "--output-dir: a run is continued in its own folder {}, not in {}", plan.path.string(), options.output_dir);
    }
  } else {
    const auto settings = lab::settings::combine(options.settings.sources());
    const auto name =
        fmt::format("runs/{}-{}-{}-seed{}", settings.dataset, settings.model, settings.opt, settings.seed);
    plan.path = options.output_dir.empty() ? fs::path(name) : fs::path(options.output_dir);
    // A launcher that starts processes again gives them the command they had.
    const bool again = options.auto_resume || environment.launcher == "torchrun";
    plan.resume = again && lab::train::RunFolder::holds_run(plan.path);
    if (!plan.resume && !options.dry_run) lab::train::RunFolder::check_free(plan.path);
  }
  if (plan.resume) {
    folder.emplace(lab::train::RunFolder::open(plan.path));
    plan.begun = !lab::train::checkpoints_in(plan.path).empty();
    plan.stored = folder->settings();
  }
  return plan;
}

lab::dist::GroupOptions group_options(const TrainOptions& options, const lab::dist::Environment& environment) {
  lab::dist::GroupOptions group;
  group.facts = {{"the command", "train"}, {"--resume", options.resume}};
  if (options.resume.empty()) {
    auto settings = lab::settings::combine(options.settings.sources());
    lab::train::take_environment(settings, environment, options.settings.given().count("ranks") != 0);
    settings = lab::train::resolve(settings);
    group.timeout = settings.dist_timeout;
    group.facts.update(lab::train::facts_of(settings));
  } else {
    const auto sources = options.settings.sources();
    group.timeout = lab::train::timeout_of(sources, options.resume);
    group.facts.update(lab::train::facts_of(sources));
  }
  group.facts.update({{"--output-dir", options.output_dir}, {"--dry-run", options.dry_run}});
  return group;
}

/// What a rank knows when everything is read.
lab::dist::Facts facts_of(const lab::train::RunParts& parts) {
  auto facts = lab::train::facts_of(parts.settings);
  facts.update(lab::train::facts_of(*parts.data.train, "training"));
  facts.update(lab::train::facts_of(*parts.data.test, "test"));
  if (parts.data.validation) facts.update(lab::train::facts_of(*parts.data.validation, "validation"));
  return facts;
}

int work(const TrainOptions& options, lab::dist::Group& group) {
  const auto& environment = group.environment();
  lab::Progress progress(group.is_first() ? kStyles.at(options.progress) : lab::ProgressStyle::Quiet);
  if (!group.is_first()) spdlog::set_level(spdlog::level::err);  // what all ranks meet is said once
  std::optional<lab::train::RunFolder> folder;
  const auto plan =
      group.agree("plan", [&] { return nlohmann::json(make_plan(options, environment, folder)); }).get<Plan>();
  auto settings = plan.resume ? settings_to_resume(options, plan.stored, environment)
                              : lab::settings::combine(options.settings.sources());
  if (!plan.resume) {
    lab::train::take_environment(settings, environment, false);
    lab::train::check_given(options.settings.given(), settings);
  }
  auto parts = lab::train::prepare_run(settings, plan.begun);
  if (!plan.resume || options.dry_run) introduce(parts, plan.path, progress);
  if (!group.alone()) {
    progress.line(fmt::format(
        "{} ranks on {}: a step has {} images, {} of each rank", group.size(), fmt::join(group.hosts(), ", "),
        group.size() * parts.settings.accumulate * parts.settings.batch_size,
        parts.settings.accumulate * parts.settings.batch_size));
  }
  group.compare("run", facts_of(parts));
  if (options.dry_run) return 0;
  group.connect(parts.settings.device != "cpu");
  if (!folder) {
    folder.emplace(
        group.is_first() ? lab::train::RunFolder::create(plan.path, parts.settings)
                         : lab::train::RunFolder::of_another_process(plan.path));
  }
  lab::train::Trainer trainer(std::move(parts), std::move(*folder), progress, &group);
  if (plan.resume) {
    progress.line(
        trainer.was_finished()
            ? fmt::format("{} was finished before; nothing of it is written anew", plan.path.string())
            : fmt::format("continuing {} after step {}", plan.path.string(), trainer.state().step));
  }
  try {
    return conclude(trainer, trainer.run(), plan.path, progress, group.is_first());
  } catch (const lab::UserError&) {
    // Bad input that shows only when it is read, such as a damaged image, leaves no run behind.
    if (!plan.resume) trainer.folder().discard_unless_begun();
    throw;
  }
}

int run(const TrainOptions& options) {
  const auto environment = lab::dist::environment();
  lab::dist::Group group(environment, group_options(options, environment));
  return lab::dist::guarded(group, [&] { return work(options, group); });
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
  app.add_flag(
         "--auto-resume", options->auto_resume,
         "continue the run in --output-dir if there is one, else start it: the same command every time")
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
