#include "study/run_study.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/text.h"
#include "optimizers/options.h"
#include "records/run_record.h"
#include "settings/recipe.h"
#include "train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

namespace sgdph::lab::study {
namespace {

namespace fs = std::filesystem;

/// How often the runs of other processes are looked at.
constexpr std::chrono::milliseconds kLook{300};

std::vector<std::string> words_of(const StudyRun& run, const fs::path& config) {
  std::vector<std::string> words{own_program(), "train", "--progress", "machine", "--config", config.string()};
  if (train::RunFolder::holds_run(run.folder)) {
    words.insert(words.end(), {"--resume", run.folder.string()});
  } else {
    words.insert(words.end(), {"--output-dir", run.folder.string()});
  }
  return words;
}

/// What a run said, line by line, without the program's name.
std::vector<std::string> lines_of(const std::string& errors) {
  constexpr std::string_view kName = "sgdph: ";
  std::vector<std::string> lines;
  std::istringstream in(errors);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(kName, 0) == 0) line = line.substr(kName.size());
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// What a run that is over came to.
std::string end_of(const StudyRun& run) {
  const auto record = records::read_run_record(run.folder);
  if (!record) return "no record";
  const auto accuracy = record->tested ? fmt::format("test accuracy {:.2f} %, ", record->top1) : "";
  return fmt::format("{}, {}{}", record->status, accuracy, measured_time_text(record->train_seconds));
}

/// Which run is begun when: side by side the long ones first, or the last of them would be alone at the end. Those that
/// measure curvature take the most.
std::vector<size_t> order_of(const std::vector<StudyRun>& runs, int64_t jobs) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  if (jobs == 1) return order;
  std::stable_partition(order.begin(), order.end(), [&](size_t i) {
    return optimizers::optimizer_entry(runs[i].settings.opt).info.traits.measures_curvature;
  });
  return order;
}

/// The runs of a study as the jobs of this process see them. A run belongs to the process that holds its claim, a
/// locked file in the study's folder; a claim ends with its holder, however that ends.
class Study {
 public:
  Study(const std::vector<StudyRun>& runs, const StudyOptions& options, const std::function<std::string()>& table)
      : runs_(runs),
        options_(options),
        table_(table),
        order_(order_of(runs, options.jobs)),
        standings_(runs.size(), Standing::Open),
        waited_(runs.size()) {}

  int run() {
    const InterruptGuard guard;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!is_over(runs_[i])) continue;
      standings_[i] = Standing::Over;
      tidy(i);
      if (!progress_.is_live()) progress_.note(name(i) + ": done before");
    }
    to_do_ = count(Standing::Open);
    progress_.above(table_());
    std::vector<std::thread> others;
    const auto jobs = std::min<int64_t>(options_.jobs, std::max<int64_t>(1, to_do_));
    for (int64_t i = 1; i < jobs; ++i) others.emplace_back([this] { work(); });
    work();
    for (auto& other : others) other.join();
    progress_.clear();
    if (failure_) std::rethrow_exception(failure_);
    if (interrupted()) return kInterrupted;
    return count(Standing::Failed) > 0 ? 1 : 0;
  }

 private:
  enum class Standing { Open, Here, Over, Failed };
  struct Taken {
    size_t run;
    FileLock claim;
  };
  struct View {
    double fraction = 0;
    std::string words;
  };

  std::string name(size_t i) const { return fmt::format("[{}/{}] {}", i + 1, runs_.size(), runs_[i].name); }
  int64_t count(Standing standing) const { return std::count(standings_.begin(), standings_.end(), standing); }

  /// One job: run after run until nothing is left for it.
  void work() {
    std::unique_lock lock(mutex_);
    try {
      while (!interrupted() && !failure_) {
        if (auto taken = take()) {
          perform(taken->run, lock);
        } else if (count(Standing::Open) == 0) {
          return;
        } else {
          changed_.wait_for(lock, kLook);  // what is open is with other processes
        }
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (!failure_) failure_ = std::current_exception();
    }
  }

  fs::path claim_file(size_t i) const {
    return options_.folder / (runs_[i].folder.filename().string() + train::kClaim);
  }
  fs::path config_file(size_t i) const { return options_.folder / (runs_[i].folder.filename().string() + ".toml"); }

  /// Takes away what a killed process left beside a run that is over.
  void tidy(size_t i) const {
    remove_half_written(config_file(i));
    const auto there = [](const fs::path& path) { return fs::exists(fs::symlink_status(path)); };
    if (!there(claim_file(i)) && !there(config_file(i))) return;
    const auto claim = FileLock::take(claim_file(i));
    std::error_code ignored;
    if (claim) fs::remove(config_file(i), ignored);
  }

  /// The first run that nobody has.
  std::optional<Taken> take() {
    for (const auto i : order_) {
      if (standings_[i] != Standing::Open) continue;
      auto claim = FileLock::take(claim_file(i));
      // Looked at under the claim: the one who had it before may have finished the run.
      if (claim && is_over(runs_[i])) {
        claim.reset();
        tidy(i);
        over(i);
        continue;
      }
      if (claim && !train::RunFolder::in_use(runs_[i].folder)) {
        claim->sign(own_host());
        standings_[i] = Standing::Here;
        return Taken{i, std::move(*claim)};
      }
      if (!waited_[i]) progress_.note(name(i) + ": another process is working on it");
      waited_[i] = true;
    }
    return std::nullopt;
  }

  void over(size_t i) {
    standings_[i] = Standing::Over;
    ++done_;
    progress_.above(table_());
    if (!progress_.is_live()) progress_.note(fmt::format("{}: {}", name(i), end_of(runs_[i])));
  }

  void perform(size_t i, std::unique_lock<std::mutex>& lock) {
    const auto& run = runs_[i];
    const auto config = config_file(i);
    if (!progress_.is_live()) progress_.note(name(i));
    views_[i] = {};
    show();
    write_own_file(config, {settings::to_toml(run.settings)});
    const auto words = words_of(run, config);
    lock.unlock();
    const auto end = options_.run(words, [&](const auto& record) {
      const std::lock_guard inner(mutex_);
      if (record.contains("fraction")) views_[i] = {record["fraction"], record.value("words", "")};
      show();
    });
    lock.lock();
    std::error_code ignored;
    fs::remove(config, ignored);
    views_.erase(i);
    changed_.notify_all();
    const auto lines = lines_of(end.errors);
    for (const auto& line : lines) {
      if (line.rfind("warning: ", 0) == 0) progress_.note(fmt::format("{}: {}", name(i), line));
    }
    // A run that diverged has its record.
    if (is_over(run)) return over(i);
    standings_[i] = Standing::Open;
    if (end.exit_code == kInterrupted || interrupted()) return;
    // Somebody who trains in the folder by hand was faster.
    if (train::RunFolder::in_use(run.folder)) return;
    standings_[i] = Standing::Failed;
    // What one run meets, another need not: the study goes on. All that it said is of use to whoever looks for the
    // cause, and stands nowhere else.
    const auto reason = end.reason();
    for (const auto& line : lines) {
      if (line.rfind("warning: ", 0) != 0 && line != reason) progress_.note(fmt::format("{}: {}", name(i), line));
    }
    progress_.note(fmt::format("{}: failed: {}", name(i), reason));
  }

  void show() {
    if (views_.empty()) return;
    auto fraction = static_cast<double>(done_);
    std::string words;
    for (const auto& [i, view] : views_) {
      fraction += std::max(0., view.fraction);
      words += words.empty() ? "" : ", ";
      words += views_.size() == 1 ? name(i) + "  " + view.words
                                  : fmt::format("{} {:.0f} %", runs_[i].name, 100 * std::max(0., view.fraction));
    }
    progress_.at(fraction / static_cast<double>(to_do_), words);
  }

  const std::vector<StudyRun>& runs_;
  const StudyOptions& options_;
  const std::function<std::string()>& table_;
  const std::vector<size_t> order_;
  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  Progress progress_;
  std::vector<Standing> standings_;
  std::vector<bool> waited_;  ///< said to be with another process
  std::map<size_t, View> views_;
  int64_t to_do_ = 0;
  int64_t done_ = 0;  ///< of those
  std::exception_ptr failure_;
};

}  // namespace

void share_machine(settings::Settings& settings, int64_t jobs) {
  if (jobs == 1) return;
  if (settings.threads == 0) settings.threads = std::max<int64_t>(1, std::min(default_threads(), core_count() / jobs));
  settings.side_by_side = std::max(settings.side_by_side, jobs);
}

void keep_machine_of_begun(settings::Settings& settings, const fs::path& folder) {
  if (!train::RunFolder::holds_run(folder)) return;
  settings::Settings stored;
  try {
    stored = settings::read_stored_settings((folder / "settings.toml").string());
  } catch (const UserError&) {
    return;  // said where the folder is looked at
  }
  if (settings.threads == 0) settings.threads = stored.threads;
  if (!settings.workers) settings.workers = stored.workers;
  settings.side_by_side = std::max(settings.side_by_side, stored.side_by_side);
}

int run_study(
    const std::vector<StudyRun>& runs, const StudyOptions& options, const std::function<std::string()>& table) {
  return Study(runs, options, table).run();
}

}  // namespace sgdph::lab::study
