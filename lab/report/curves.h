#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "report/collect.h"

namespace sgdph::lab::report {

/// A figure that is logged every epoch.
struct Metric {
  const char* key;    ///< in the log
  const char* title;  ///< "Test accuracy"
  const char* unit;   ///< "%", or nothing
  const char* slug;   ///< in names of files
};
constexpr std::array<Metric, 4> kMetrics{
    {{"test_top1", "Test accuracy", "%", "test-accuracy"},
     {"test_loss", "Test loss", "", "test-loss"},
     {"train_top1", "Training accuracy", "%", "train-accuracy"},
     {"train_loss", "Training loss", "", "train-loss"}}};
/// The same of runs that were measured on validation images.
constexpr std::array<Metric, kMetrics.size()> kValidationMetrics{
    {{"val_top1", "Validation accuracy", "%", "validation-accuracy"},
     {"val_loss", "Validation loss", "", "validation-loss"},
     kMetrics[2],
     kMetrics[3]}};

/// Mean and deviation (n - 1) over runs; NaN where no run has a figure.
struct Curve {
  std::vector<double> mean;
  std::vector<double> deviation;
};

/// Runs of one series, test by test.
struct Curves {
  std::vector<double> epochs;   ///< whole ones, and fractions where a test was made within an epoch
  std::vector<double> seconds;  ///< of training up to the epoch's end: the sum of each epoch's mean over runs
  std::vector<size_t> counts;   ///< runs that got so far
  std::array<Curve, kMetrics.size()> metrics;
};

/// At most `points` tests, evenly spread, the first and the last among them.
Curves make_curves(const std::vector<const FoundRun*>& runs, size_t points);

}  // namespace sgdph::lab::report
