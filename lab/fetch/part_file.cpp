#include "fetch/part_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/error.h"

namespace sgdph::lab::fetch {

namespace fs = std::filesystem;

PartFile::PartFile(const fs::path& target)
    : target_(target), path_(target.string() + ".part"), origin_path_(target.string() + ".part.json") {}

void PartFile::keep_only(const std::string& url) {
  std::error_code error;
  const auto bytes = fs::file_size(path_, error);
  if (!error && fs::exists(origin_path_, error)) {
    // A note that cannot be understood is no reason to stop: the part is fetched anew.
    const auto note = nlohmann::json::parse(read_file(origin_path_), nullptr, false);
    if (note.is_object()) {
      try {
        origin_ = {note.value("url", ""), note.value("validator", ""), note.value("total", int64_t{0})};
      } catch (const nlohmann::json::exception&) {
        origin_ = {};
      }
    }
    if (origin_.url == url && !origin_.validator.empty()) {
      size_ = static_cast<int64_t>(bytes);
      return;
    }
  }
  remove();
}

void PartFile::restart(const PartOrigin& origin) {
  // The bytes go first: a note beside the bytes of another file would join two files.
  size_ = 0;
  origin_ = origin;
  open(OutputFile::Mode::Replace);
  const auto note =
      nlohmann::json{{"url", origin.url}, {"validator", origin.validator}, {"total", origin.total}}.dump() + "\n";
  write_own_file(origin_path_, {note});
}

void PartFile::append(std::string_view bytes) {
  if (!file_) open(OutputFile::Mode::Append);
  file_->write(bytes);
  size_ += static_cast<int64_t>(bytes.size());
}

void PartFile::put_in_place() {
  if (!file_) open(OutputFile::Mode::Append);
  file_->finish();
  file_.reset();
  lab::put_in_place(path_, target_);
  std::error_code error;
  fs::remove(origin_path_, error);
}

void PartFile::remove() {
  file_.reset();
  std::error_code error;
  do fs::remove(path_, error);
  while (error == std::errc::interrupted);
  if (error) fail_by(error.value(), "cannot remove {}: {}", path_.string(), error.message());
  fs::remove(origin_path_, error);
  origin_ = {};
  size_ = 0;
}

void PartFile::open(OutputFile::Mode mode) {
  file_.emplace(path_, mode, "; what is there can be continued");
  file_->expect(static_cast<size_t>(std::max<int64_t>(0, origin_.total - size_)));
}

}  // namespace sgdph::lab::fetch
