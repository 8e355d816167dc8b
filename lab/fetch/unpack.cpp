#include "fetch/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"

namespace sgdph::lab::fetch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kArchivePiece = size_t{1} << 18;

template <class... Args>
[[noreturn]] void refuse_archive(fmt::format_string<Args...> text, Args&&... args) {
  throw BadArchive(fmt::format(text, std::forward<Args>(args)...));
}

struct ArchiveDeleter {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

class Unpacker {
 public:
  Unpacker(const fs::path& archive, const fs::path& target, const UnpackOptions& options)
      : name_(archive.string()),
        target_(target),
        options_(options),
        reader_(archive_read_new()),
        piece_(kArchivePiece) {
    if (!reader_) throw std::bad_alloc();
    auto* reader = reader_.get();
    // Named one by one: "all" would include filters that run programs.
    archive_read_support_filter_gzip(reader);
    archive_read_support_filter_xz(reader);
    archive_read_support_filter_bzip2(reader);
    archive_read_support_format_tar(reader);
    // By its directory at the end only: reading a zip as a stream would not notice that its end is missing.
    archive_read_support_format_zip_seekable(reader);
    // Without it the bytes after the end mark of a tar are not read, and a missing tail of the compressed stream not
    // seen.
    archive_read_set_option(reader, "tar", "read_concatenated_archives", "1");
    if (archive_read_open_filename(reader, name_.c_str(), kArchivePiece) != ARCHIVE_OK) damaged();
  }

  void run() {
    int64_t entries = 0;
    archive_entry* entry = nullptr;
    for (;;) {
      const int code = archive_read_next_header(reader_.get(), &entry);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) damaged();
      if (++entries > options_.max_entries)
        refuse_archive("{} has more than {} entries; refused", name_, options_.max_entries);
      unpack_entry(entry);
    }
    for (const auto& file : options_.required) {
      if (done_.count(file) == 0) refuse_archive("{} does not hold {}/{}", name_, options_.folder, file);
    }
  }

 private:
  [[noreturn]] void damaged() const {
    const char* why = archive_error_string(reader_.get());
    refuse_archive("{} is damaged or no archive (tar, zip): {}", name_, why != nullptr ? why : "unknown reason");
  }

  /// The entry's name as a path below the folder to unpack to.
  fs::path safe_path(archive_entry* entry) const {
    const char* text = archive_entry_pathname(entry);
    if (text == nullptr || *text == '\0') refuse_archive("{} has an entry without a readable name; refused", name_);
    const auto refuse = [&](const char* why) {
      refuse_archive("{} has the entry '{}', {}; refused", name_, printable(text), why);
    };
    const fs::path path(text);
    if (path.is_absolute()) refuse("an absolute path");
    if (std::find(path.begin(), path.end(), "..") != path.end()) refuse("which leaves the folder");
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr) refuse("a link");
    const auto type = archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) refuse("neither a file nor a folder");
    return path.lexically_normal();
  }

  /// The name under which the entry is kept, if it is.
  std::optional<std::string> kept_name(archive_entry* entry) const {
    const auto path = safe_path(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || path.parent_path() != options_.folder) return {};
    const auto name = path.filename().string();
    for (const auto* list : {&options_.required, &options_.optional}) {
      if (std::find(list->begin(), list->end(), name) != list->end()) return name;
    }
    return {};
  }

  void unpack_entry(archive_entry* entry) {
    const auto name = kept_name(entry);
    if (name && !done_.insert(*name).second)
      refuse_archive("{} holds {}/{} twice; refused", name_, options_.folder, *name);
    std::optional<OutputFile> out;
    if (name) out.emplace(target_ / *name, OutputFile::Mode::Create, fmt::format("; {} is kept", name_));
    if (name) out->expect(static_cast<size_t>(std::max<int64_t>(0, archive_entry_size(entry))));
    // What is not kept is read as well: it counts, and damage in it is damage.
    for (;;) {
      if (is_set(options_.cancel)) throw Interrupted(fmt::format("interrupted while unpacking {}", name_));
      const auto count = archive_read_data(reader_.get(), piece_.data(), piece_.size());
      if (count < 0) damaged();
      if (count == 0) break;
      bytes_ += count;
      if (bytes_ > options_.max_bytes)
        refuse_archive("{} unpacks to more than {} bytes; refused", name_, options_.max_bytes);
      if (out) out->write({piece_.data(), static_cast<size_t>(count)});
    }
    if (out) out->finish();
  }

  std::string name_;
  const fs::path& target_;
  const UnpackOptions& options_;
  std::unique_ptr<archive, ArchiveDeleter> reader_;
  std::vector<char> piece_;
  std::set<std::string> done_;
  int64_t bytes_ = 0;
};

}  // namespace

void unpack(const fs::path& archive, const fs::path& target, const UnpackOptions& options) {
  Unpacker(archive, target, options).run();
}

StagingFolder::StagingFolder(const fs::path& target)
    : target_(target), path_(target.parent_path() / ("." + target.filename().string() + ".new")) {
  std::error_code error;
  fs::remove_all(path_, error);
  if (!fs::create_directory(path_, error)) {
    throw WriteError(fmt::format("cannot make the folder {}: {}", path_.string(), error.message()));
  }
}

StagingFolder::~StagingFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

fs::path StagingFolder::put_in_place() {
  fs::path old;
  if (fs::exists(fs::symlink_status(target_))) {
    old = target_.string() + ".old";
    for (int n = 2; fs::exists(fs::symlink_status(old)); ++n) old = fmt::format("{}.old{}", target_.string(), n);
    lab::put_in_place(target_, old);
  }
  try {
    lab::put_in_place(path_, target_);
  } catch (const UserError&) {
    if (!old.empty()) lab::put_in_place(old, target_);
    throw;
  }
  path_.clear();
  return old;
}

}  // namespace sgdph::lab::fetch
