#pragma once

#include <filesystem>
#include <string>

#include "records/run_log.h"
#include "report/collect.h"

namespace sgdph::test {

/// A run's folder with the figures of a straight line: accuracy `top1` - 1 per epoch before the last.
inline std::filesystem::path write_run(
    const std::filesystem::path& folder, const std::string& optimizer, int64_t seed, double top1, int64_t epochs = 4,
    nlohmann::json settings = nlohmann::json::object()) {
  nlohmann::json all{
      {"dataset", "cifar10"}, {"model", "resnet8"}, {"epochs", epochs}, {"opt", optimizer}, {"seed", seed}};
  all.update(settings);
  std::filesystem::create_directories(folder);
  std::vector<nlohmann::json> records;
  records.push_back({{"type", "header"}, {"cpu", "a CPU"}, {"settings", all}});
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto behind = static_cast<double>(epochs - epoch);
    records.push_back(
        {{"type", "epoch"},
         {"epoch", epoch},
         {"test_top1", top1 - behind},
         {"test_loss", 0.001 * (1 + behind)},
         {"train_top1", top1},
         {"train_loss", 1 + behind},
         {"cost", {{"train_seconds", 10}}}});
  }
  records.push_back(
      {{"type", "end"},
       {"status", "finished"},
       {"cost", {{"train_seconds", 10 * epochs}, {"peak_memory_bytes", 1000}}}});
  lab::records::RunLog(folder / "log.jsonl").start(std::move(records));  // at once: every line appended is synced
  return folder;
}

}  // namespace sgdph::test
