#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "records/cost_record.h"
#include "records/inspect_record.h"
#include "records/run_store.h"
#include "report/experiment_table.h"
#include "report/reference.h"

namespace sgdph::lab::report {

struct FoundRun {
  std::string name;  ///< its folder as seen from the one that was given
  records::RunRecord record;
  nlohmann::json settings;  ///< as logged; a run of another version may have others than ours
  int64_t seed = 0;
};

struct FoundCost {
  std::string name;
  records::CostReport report;
};

struct FoundInspection {
  std::string name;
  records::InspectReport report;
  std::vector<std::string> pictures;  ///< SVG
};

/// A file that something was read from, to pack it.
struct FoundFile {
  std::shared_ptr<const records::RunStore> store;
  std::filesystem::path path;  ///< below the store
};

/// What lies in the folders and packed files of a report.
struct Collection {
  std::vector<FoundRun> runs;
  std::vector<FoundCost> costs;
  std::vector<FoundInspection> inspections;
  std::vector<ExperimentTable> experiments;
  std::vector<ReferenceFigure> references;
  std::vector<FoundFile> files;      ///< that all this was read from
  std::vector<std::string> notices;  ///< what was left out, and why

  /// Experiments of accuracy alone are nothing: they point to runs.
  bool empty() const;
};

/// Looks through the folders and all below them, and through packed files. A file that cannot be read is left out with
/// a notice; a folder that does not exist, folders with nothing at all and a damaged packed file are a UserError.
Collection collect(const std::vector<std::filesystem::path>& places);

/// All of it in one text that `collect` reads from a file as it reads the folders.
std::string pack(const Collection& collection);

}  // namespace sgdph::lab::report
