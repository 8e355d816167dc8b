#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "formats/event_file.h"

namespace sgdph::lab::train {

/// The second log of a run, for TensorBoard: a point per epoch for losses, accuracies, learning rate and speed. Every
/// process that works on a run has a file of its own, and no step appears twice: what earlier files hold is left out.
class EventLog {
 public:
  explicit EventLog(std::filesystem::path folder);

  /// The log so far, at the times that its header and seconds tell.
  void catch_up(const std::vector<nlohmann::json>& records);

  /// A record of the run's log; those other than of epochs, and those of steps written before, are passed over. The
  /// file is made with the first point.
  void write(const nlohmann::json& record);

 private:
  void write_at(double time, const nlohmann::json& record);

  std::filesystem::path folder_;
  std::optional<int64_t> last_step_;
  std::optional<formats::EventFile> file_;
};

}  // namespace sgdph::lab::train
