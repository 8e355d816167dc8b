#include "report/collect.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"

#include <algorithm>
#include <set>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestPicture = 1000000;  // bytes

/// The folder's own name, and the path below it.
std::string name_below(const fs::path& top, const fs::path& folder) {
  auto name = fs::absolute(top).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const auto below = folder.lexically_relative(top);
  return as_utf8((below == "." ? name.filename() : name.filename() / below).generic_string());
}

/// Every file below the folder, by name.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) fail("there is no folder {}", folder.string());
  if (!fs::is_directory(folder, error))
    fail("{} is not a folder; give the folder of a run, or one above it", folder.string());
  std::vector<fs::path> files;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error); at != fs::recursive_directory_iterator();
       at.increment(error)) {
    if (error) fail("cannot look through {}: {}", folder.string(), error.message());
    std::error_code gone;
    if (at->is_regular_file(gone)) files.push_back(at->path());
  }
  if (error) fail("cannot look through {}: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

class Collector {
 public:
  void look_through(const fs::path& top) {
    for (const auto& file : files_below(top)) {
      std::error_code error;
      const auto real = fs::canonical(file, error);
      if (error || !seen_.insert(real).second) continue;
      const auto name = name_below(top, file.parent_path());
      try {
        take(file, name);
      } catch (const UserError& problem) {
        found_.notices.push_back(as_utf8(fmt::format("Left out: {}", problem.what())));
      }
    }
  }

  Collection result() { return std::move(found_); }

 private:
  void take(const fs::path& file, const std::string& name) {
    const auto kind = file.filename();
    if (kind == "log.jsonl") return take_run(file, name);
    if (kind.extension() != ".json") return;
    // By what it is, since an experiment may have any name.
    if (auto tables = read_experiment_tables(file)) {
      for (auto& table : *tables) found_.experiments.push_back(std::move(table));
    } else if (kind == "cost.json") {
      take_cost(file, name);
    } else if (kind == "inspect.json") {
      take_inspection(file, name);
    } else if (kind == kReferenceFile) {
      for (auto& figure : read_references(file)) found_.references.push_back(std::move(figure));
    }
  }

  void take_run(const fs::path& file, const std::string& name) {
    auto record = read_run_record(file.parent_path());
    if (!record) fail("{}: not one whole line; a run that has just begun, or a record cut off", file.string());
    FoundRun run;
    run.name = name;
    run.settings = record->header.value("settings", nlohmann::json());
    if (!run.settings.is_object()) fail("{}: the header has no settings; a record of another version", file.string());
    for (const auto* key : {"dataset", "model", "opt"}) {
      if (!run.settings.value(key, nlohmann::json()).is_string())
        fail("{}: the settings have no {}", file.string(), key);
    }
    const auto seed = run.settings.value("seed", nlohmann::json());
    run.seed = seed.is_number_integer() ? seed.get<int64_t>() : 0;
    run.record = std::move(*record);
    found_.runs.push_back(std::move(run));
  }

  void take_cost(const fs::path& file, const std::string& name) {
    try {
      FoundCost cost{name, nlohmann::json::parse(read_file(file)).get<CostReport>()};
      for (const auto& row : cost.report.rows) engine(row.engine);
      found_.costs.push_back(std::move(cost));
    } catch (const nlohmann::json::exception& error) {
      fail("{}: not the figures of sgdph cost: {}", file.string(), error.what());
    }
  }

  void take_inspection(const fs::path& file, const std::string& name) {
    FoundInspection inspection;
    inspection.name = name;
    inspection.facts = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
    for (const auto* key : {"blocks", "rows"}) {
      if (!inspection.facts.is_object() || !inspection.facts.contains(key) || !inspection.facts[key].is_array())
        continue;
      inspection.blocks = inspection.facts[key];
      inspection.facts.erase(key);
      break;
    }
    if (inspection.blocks.is_null()) fail("{}: no list of blocks as sgdph inspect writes it", file.string());
    std::set<fs::path> pictures;
    for (const auto& beside : fs::directory_iterator(file.parent_path())) {
      const auto stem = beside.path().filename().string();
      if (stem.rfind("inspect", 0) == 0 && beside.path().extension() == ".svg") pictures.insert(beside.path());
    }
    for (const auto& picture : pictures) {
      auto svg = read_file(picture);
      if (svg.size() <= kLargestPicture) {
        inspection.pictures.push_back(std::move(svg));
      } else {
        found_.notices.push_back(as_utf8(fmt::format("Left out: {}: larger than a megabyte", picture.string())));
      }
    }
    found_.inspections.push_back(std::move(inspection));
  }

  Collection found_;
  std::set<fs::path> seen_;
};

}  // namespace

bool Collection::empty() const {
  const auto of_cost = [](const auto& table) { return table.of_cost; };
  return runs.empty() && costs.empty() && inspections.empty() &&
         std::none_of(experiments.begin(), experiments.end(), of_cost);
}

Collection collect(const std::vector<fs::path>& folders) {
  Collector collector;
  for (const auto& folder : folders) collector.look_through(folder);
  auto found = collector.result();
  if (found.empty()) {
    fail(
        "no run, cost.json or inspect.json in {}{}", folders.front().string(),
        found.notices.empty() ? (folders.size() > 1 ? " and the other folders" : "")
                              : fmt::format(" that can be read; {}", found.notices.front()));
  }
  return found;
}

}  // namespace sgdph::lab
