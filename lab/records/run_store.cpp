#include "records/run_store.h"

#include "base/error.h"
#include "base/files.h"
#include "records/packed_records.h"
#include "records/run_log.h"

#include <algorithm>
#include <map>

namespace sgdph::lab::records {
namespace {

namespace fs = std::filesystem;

class FolderStore : public RunStore {
 public:
  explicit FolderStore(const fs::path& folder) : RunStore(folder) {}

  bool is_packed() const override { return false; }

  std::vector<fs::path> files() const override {
    std::vector<fs::path> found;
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto at = fs::recursive_directory_iterator(place(), options, error); at != fs::recursive_directory_iterator();
         at.increment(error)) {
      if (error) break;
      std::error_code gone;
      if (at->is_regular_file(gone)) found.push_back(at->path().lexically_relative(place()));
    }
    if (error) fail("cannot look through {}: {}", place().string(), error.message());
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string text(const fs::path& file) const override { return read_file(place() / file); }

  std::optional<std::vector<nlohmann::json>> log(const fs::path& run) const override {
    const auto path = (run.empty() ? place() : place() / run) / kRunLog;
    if (!fs::exists(path)) return std::nullopt;
    return read_log(path);
  }

  /// Its own name, and the path below it.
  std::string shown_name(const fs::path& folder) const override {
    auto name = fs::absolute(place()).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    const auto below = folder.lexically_normal();
    return (below.empty() || below == "." ? name.filename() : name.filename() / below).generic_string();
  }
};

class PackedStore : public RunStore {
 public:
  explicit PackedStore(const fs::path& file) : RunStore(file) {
    auto records = unpack_records(read_file(file), file.string());
    for (auto& run : records.runs) {
      files_.push_back(fs::path(run.name) / kRunLog);
      logs_[run.name] = std::move(run.lines);
    }
    for (auto& other : records.files) {
      files_.emplace_back(other.name);
      texts_[other.name] = std::move(other.text);
    }
  }

  bool is_packed() const override { return true; }
  std::vector<fs::path> files() const override { return files_; }

  std::string text(const fs::path& file) const override {
    const auto found = texts_.find(file.generic_string());
    if (found == texts_.end()) fail("{}: there is no {} in it", place().string(), file.generic_string());
    return found->second;
  }

  std::optional<std::vector<nlohmann::json>> log(const fs::path& run) const override {
    const auto found = logs_.find(run.generic_string());
    if (found == logs_.end()) return std::nullopt;
    return found->second;
  }

  /// As it was when it was packed.
  std::string shown_name(const fs::path& folder) const override { return folder.generic_string(); }

 private:
  std::vector<fs::path> files_;
  std::map<std::string, std::vector<nlohmann::json>> logs_;
  std::map<std::string, std::string> texts_;
};

}  // namespace

std::optional<RunRecord> RunStore::record(const fs::path& run) const {
  const auto lines = log(run);
  if (!lines || lines->empty()) return std::nullopt;
  return run_record(*lines, run.empty() ? place() : place() / run);
}

std::unique_ptr<RunStore> open_run_store(const fs::path& place) {
  std::error_code error;
  const bool packed = place.extension() == ".jsonl";
  if (!fs::exists(place, error)) fail("there is no {} {}", packed ? "file" : "folder", place.string());
  if (fs::is_directory(place, error)) return std::make_unique<FolderStore>(place);
  if (!packed) {
    fail("{} is not a folder; give the folder of a run, or one above it, or packed records (.jsonl)", place.string());
  }
  return std::make_unique<PackedStore>(place);
}

std::unique_ptr<RunStore> folder_of_runs(const fs::path& folder) {
  return std::make_unique<FolderStore>(folder);
}

}  // namespace sgdph::lab::records
