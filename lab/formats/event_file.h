#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

/// TensorBoard's event files: TFRecord framing (length, masked CRC-32C of the length, data, masked CRC-32C of the data)
/// around Event messages of protobuf. Only what scalars need is written.

/// CRC-32C as TFRecord keeps it: rotated and shifted, so that a checksum of data with checksums in it is no special
/// case.
uint32_t masked_crc32c(std::string_view bytes);

/// The data with its frame.
std::string framed_record(std::string_view data);

struct Scalar {
  std::string tag;  ///< "test/accuracy"
  double value = 0;
};

/// The first event of a file; without it TensorBoard does not read on.
std::string version_event(double wall_time);
std::string scalar_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

/// The largest step among the whole events of a file's bytes; nothing if there is none with scalars. Stops where a
/// record is cut off or damaged, as TensorBoard does.
std::optional<int64_t> last_event_step(std::string_view bytes);

/// A file under way. Every event is on the disk when `append` returns.
class EventFile {
 public:
  /// Makes a new file in the folder, of a name that TensorBoard finds and sorts after those made before.
  EventFile(const std::filesystem::path& folder, double wall_time);

  const std::filesystem::path& path() const { return path_; }
  void append(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

 private:
  std::filesystem::path path_;
};

/// Whether it is named as event files are.
bool is_event_file(const std::filesystem::path& path);

}  // namespace sgdph::lab::formats
