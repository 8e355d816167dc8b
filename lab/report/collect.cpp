#include "report/collect.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "cost/engine.h"
#include "records/packed_records.h"
#include "records/run_log.h"

#include <algorithm>
#include <set>

namespace sgdph::lab::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestPicture = 1000000;  // bytes

/// What a file is called in a packed one: as readers see it.
std::string packed_name(const FoundFile& file) {
  const auto folder = fs::path(as_utf8(file.store->shown_name(file.path.parent_path())));
  return (folder / as_utf8(file.path.filename().string())).generic_string();
}

class Collector {
 public:
  void look_through(const fs::path& place) {
    store_ = records::open_run_store(place);
    files_ = store_->files();
    for (const auto& file : files_) {
      std::error_code error;
      const auto real = fs::weakly_canonical(place / file, error);
      if (error || !seen_.insert(real).second) continue;
      try {
        if (take(file)) found_.files.push_back({store_, file});
      } catch (const UserError& problem) {
        found_.notices.push_back(as_utf8(fmt::format("Left out: {}", problem.what())));
      }
    }
  }

  Collection result() { return std::move(found_); }

 private:
  /// Where it is, for messages and for files that name others beside them.
  fs::path place_of(const fs::path& file) const { return store_->place() / file; }
  std::string name_of(const fs::path& file) const { return as_utf8(store_->shown_name(file.parent_path())); }

  /// Whether it is something for a report.
  bool take(const fs::path& file) {
    const auto kind = file.filename();
    if (kind == records::kRunLog) {
      take_run(file);
      return true;
    }
    if (kind.extension() != ".json") return false;
    // By what it is, since an experiment may have any name.
    if (auto tables = read_experiment_tables(place_of(file), store_->text(file))) {
      for (auto& table : *tables) found_.experiments.push_back(std::move(table));
    } else if (kind == "cost.json") {
      take_cost(file);
    } else if (kind == "inspect.json") {
      take_inspection(file);
    } else if (kind == kReferenceFile) {
      for (auto& figure : read_references(place_of(file), store_->text(file)))
        found_.references.push_back(std::move(figure));
    } else {
      return false;
    }
    return true;
  }

  void take_run(const fs::path& file) {
    const auto place = place_of(file).string();
    auto record = store_->record(file.parent_path());
    if (!record) fail("{}: not one whole line; a run that has just begun, or a record cut off", place);
    FoundRun run;
    run.name = name_of(file);
    run.settings = record->header.value("settings", nlohmann::json());
    if (!run.settings.is_object()) fail("{}: the header has no settings; a record of another version", place);
    for (const auto* key : {"dataset", "model", "opt"}) {
      if (!run.settings.value(key, nlohmann::json()).is_string()) fail("{}: the settings have no {}", place, key);
    }
    const auto seed = run.settings.value("seed", nlohmann::json());
    run.seed = seed.is_number_integer() ? seed.get<int64_t>() : 0;
    run.record = std::move(*record);
    found_.runs.push_back(std::move(run));
  }

  void take_cost(const fs::path& file) {
    const auto text = store_->text(file);
    check_json(text, place_of(file).string());
    try {
      FoundCost cost{name_of(file), nlohmann::json::parse(text).get<records::CostReport>()};
      for (const auto& row : cost.report.rows) cost::engine(row.engine);
      found_.costs.push_back(std::move(cost));
    } catch (const nlohmann::json::exception& error) {
      fail("{}: not the figures of sgdph cost: {}", place_of(file).string(), error.what());
    }
  }

  void take_inspection(const fs::path& file) {
    FoundInspection inspection;
    inspection.name = name_of(file);
    inspection.report = records::read_inspect_report(place_of(file), store_->text(file));
    for (const auto& beside : files_) {
      const bool here = beside.parent_path() == file.parent_path();
      if (!here || beside.extension() != ".svg" || beside.filename().string().rfind("inspect", 0) != 0) continue;
      auto svg = store_->text(beside);
      if (svg.size() > kLargestPicture) {
        found_.notices.push_back(
            as_utf8(fmt::format("Left out: {}: larger than a megabyte", place_of(beside).string())));
        continue;
      }
      inspection.pictures.push_back(std::move(svg));
      found_.files.push_back({store_, beside});
    }
    found_.inspections.push_back(std::move(inspection));
  }

  std::shared_ptr<const records::RunStore> store_;  ///< under way, and its files
  std::vector<fs::path> files_;
  Collection found_;
  std::set<fs::path> seen_;
};

}  // namespace

bool Collection::empty() const {
  const auto of_cost = [](const auto& table) { return table.of_cost; };
  return runs.empty() && costs.empty() && inspections.empty() &&
         std::none_of(experiments.begin(), experiments.end(), of_cost);
}

Collection collect(const std::vector<fs::path>& places) {
  Collector collector;
  for (const auto& place : places) collector.look_through(place);
  auto found = collector.result();
  if (found.empty()) {
    fail(
        "no run, cost.json or inspect.json in {}{}", places.front().string(),
        found.notices.empty() ? (places.size() > 1 ? " and the other folders" : "")
                              : fmt::format(" that can be read; {}", found.notices.front()));
  }
  return found;
}

std::string pack(const Collection& collection) {
  records::PackedRecords records;
  for (const auto& file : collection.files) {
    const auto name = packed_name(file);
    if (file.path.filename() == records::kRunLog) {
      records.runs.push_back(
          {fs::path(name).parent_path().generic_string(), *file.store->log(file.path.parent_path())});
    } else {
      records.files.push_back({name, file.store->text(file.path)});
    }
  }
  return records::pack_records(records);
}

}  // namespace sgdph::lab::report
