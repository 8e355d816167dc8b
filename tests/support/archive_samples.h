#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sgdph::test {

/// Archives of optimizers that a later version must read, and how each goes on. A tiny float64 network is trained on
/// batches without chance in them; the archive is written half way.
struct ArchiveSample {
  std::string name;
  /// The optimizer as it was before; or, to load the archive into, one with other options.
  std::function<std::unique_ptr<torch::optim::Optimizer>(const torch::nn::Module& model, bool other)> make;
};
const std::vector<ArchiveSample>& archive_samples();

/// For each sample `name.pt` (the archive after 7 steps) and `name.json` (the parameters then, and after 5 more).
/// Those of a version are written once, by that version, and kept.
void write_archive_samples(const std::filesystem::path& folder);

/// Loads the sample's archive from the folder and goes on: the largest difference of each parameter from what was
/// written there.
struct ContinuedSample {
  std::map<std::string, double> differences;
  std::string libtorch;  ///< that the sample was written with
  double largest() const;
};
ContinuedSample continue_archive_sample(const ArchiveSample& sample, const std::filesystem::path& folder);

}  // namespace sgdph::test
