#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sgdph::lab::records {

/// By what and when something was computed: what every record says first.
struct MachineFacts {
  std::string cpu, libtorch, version, started;
  int64_t threads = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineFacts, cpu, libtorch, version, started, threads)

/// Of this machine, now. LibTorch's version comes from those that see LibTorch.
MachineFacts machine_facts(const std::string& libtorch, int64_t threads);

/// What a run's folder says of it. Made from the log alone, so that tables are rebuilt without training.
struct RunRecord {
  std::filesystem::path folder;
  nlohmann::json header;
  std::vector<nlohmann::json> epochs;
  std::vector<nlohmann::json> evals;  ///< tests within epochs
  std::string status = "unfinished";  ///< or finished, diverged
  bool validated = false;             ///< epochs were measured on validation images, and the test set at the end
  bool tested = false;                ///< the figures of the test set are there
  double top1 = 0;                    ///< on the test set, after the last epoch
  double best_top1 = 0;               ///< ... of the best epoch: by validation, or without it by the test set itself
  double val_top1 = 0;                ///< on the validation images, after the last epoch
  std::optional<double> ema_top1;     ///< on the test set, of the moving average of the last weights
  double train_seconds = 0;
  int64_t peak_memory = 0;
  int64_t threads = 0;       ///< 0: unknown
  int64_t side_by_side = 1;  ///< most runs that shared the machine with it, itself counted

  bool over() const { return status != "unfinished"; }
  /// An entry of the header, whatever another version may have put there; "-" if there is none.
  std::string header_text(const char* key) const;
};

/// A figure of a record's evaluation ("top1", "loss"): on validation images if the run has any, else on the test set;
/// null if there is none.
nlohmann::json measured(const nlohmann::json& record, const std::string& figure);

/// From the lines of its log; `folder` is where it lies. A UserError for lines of another kind.
RunRecord run_record(const std::vector<nlohmann::json>& lines, const std::filesystem::path& folder);

/// Nothing if there is no log yet; a UserError for a log of another kind.
std::optional<RunRecord> read_run_record(const std::filesystem::path& folder);

}  // namespace sgdph::lab::records
