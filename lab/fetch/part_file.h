#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace sgdph::lab::fetch {

/// What must be the same for a part to be continued.
struct PartOrigin {
  std::string url;
  std::string validator;  ///< a strong ETag or a Last-Modified date; empty: the server gives none
  int64_t total = 0;      ///< bytes of the whole file; 0: the server does not say
};

/// The beginning of a file under way, `<target>.part`, with its origin beside it.
class PartFile {
 public:
  explicit PartFile(const std::filesystem::path& target);

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }
  const PartOrigin& origin() const { return origin_; }

  /// Removes what is there unless it is a continuable part of `url`.
  void keep_only(const std::string& url);
  /// Empties the part and notes where it will come from.
  void restart(const PartOrigin& origin);
  /// To the end of the part.
  void append(std::string_view bytes);
  /// Makes the part, complete, the target.
  void put_in_place();
  void remove();

 private:
  void open(OutputFile::Mode mode);

  std::filesystem::path target_;
  std::filesystem::path path_;
  std::filesystem::path origin_path_;
  PartOrigin origin_;
  int64_t size_ = 0;
  std::optional<OutputFile> file_;
};

}  // namespace sgdph::lab::fetch
