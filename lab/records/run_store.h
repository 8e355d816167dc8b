#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "records/run_record.h"

namespace sgdph::lab::records {

/// Where records are kept: a folder with all below it, or one packed file, which reads as the folder it was made of.
class RunStore {
 public:
  virtual ~RunStore() = default;

  /// The folder, or the packed file.
  const std::filesystem::path& place() const { return place_; }
  /// A packed file is for reading only.
  virtual bool is_packed() const = 0;
  /// All files by their paths below `place`; the log of a run is RUN/log.jsonl.
  virtual std::vector<std::filesystem::path> files() const = 0;
  virtual std::string text(const std::filesystem::path& file) const = 0;
  /// The whole lines of a run's log; nothing if there is no such run.
  virtual std::optional<std::vector<nlohmann::json>> log(const std::filesystem::path& run) const = 0;
  /// What a folder below it is called for readers.
  virtual std::string shown_name(const std::filesystem::path& folder) const = 0;

  /// Nothing if there is no such run, or not a line of it yet; a UserError for a log of another kind.
  std::optional<RunRecord> record(const std::filesystem::path& run) const;

 protected:
  explicit RunStore(std::filesystem::path place) : place_(std::move(place)) {}

 private:
  std::filesystem::path place_;
};

/// A folder, or a packed file (FILE.jsonl). A UserError if there is none, or with file and line if it is damaged.
std::unique_ptr<RunStore> open_run_store(const std::filesystem::path& place);

/// A folder that need not be there yet: without it there is no run.
std::unique_ptr<RunStore> folder_of_runs(const std::filesystem::path& folder);

}  // namespace sgdph::lab::records
