#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sgdph::lab {

/// Holds `path` as a lock file for its lifetime; a UserError if another process does. A killed process holds nothing.
class FileLock {
 public:
  /// What becomes of the file at the end.
  enum class After { Remove, Keep };

  /// `activity`: what its holder is doing, for the others' message: "fetching cifar10".
  FileLock(std::filesystem::path path, const std::string& activity, After after = After::Remove);
  /// The same for one who can do without: nothing if another process holds it.
  static std::optional<FileLock> take(const std::filesystem::path& path, After after = After::Remove);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// Leaves words in the file, for those who look whose it is. What cannot be written is left out.
  void sign(const std::string& words) const;

  /// Whether a process holds it.
  static bool is_held(const std::filesystem::path& path);

 private:
  FileLock(std::filesystem::path path, After after, int file);

  std::filesystem::path path_;
  After after_;
  int file_ = -1;
};

/// How many lock files of a folder, those with this extension, are held by processes that signed them with these words.
int64_t held_locks(const std::filesystem::path& folder, const std::string& extension, const std::string& signature);

}  // namespace sgdph::lab
