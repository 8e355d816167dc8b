#include "fetch/fetch.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/lock.h"
#include "data/datasets.h"
#include "fetch/manifest.h"
#include "fetch/unpack.h"
#include "fetch/verify.h"

namespace sgdph::lab::fetch {
namespace {

namespace fs = std::filesystem;

/// The last part of a URL's path: the archive's name on our disk.
std::string archive_name(const std::string& url) {
  const auto path = url.substr(0, url.find_first_of("?#"));
  const auto host = path.find("://");
  const auto slash = path.rfind('/');
  if (host == std::string::npos || slash == std::string::npos || slash < host + 3 || slash + 1 == path.size()) {
    fail("'{}' does not name an archive: expected something like https://host/cifar-100-binary.tar.gz", url);
  }
  auto name = path.substr(slash + 1);
  if (name == "." || name == "..") fail("'{}' does not name an archive", url);
  return name;
}

/// Whoever names the data set's own folder means that one, not a folder of that name in it.
fs::path root_of(const fs::path& root, const std::string& folder) {
  const auto path = root.has_filename() ? root : root.parent_path();
  if (path.filename() != folder) return root;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// A message of the readers, which ends with the advice to fetch: that is under way.
std::string without_remedy(const std::string& message, const data::DatasetEntry& entry, const fs::path& path) {
  return message.substr(0, message.find("; " + data::remedy(entry, path)));
}

std::vector<std::string> file_names(const data::DatasetEntry& entry) {
  std::vector<std::string> names;
  for (const auto* part : {&entry.train, &entry.test}) {
    for (const auto& file : part->files) names.push_back(file.name);
  }
  return names;
}

fs::path lock_file(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".lock");
}

class Fetch {
 public:
  Fetch(const data::DatasetEntry& entry, const data::DatasetArchive& source, const FetchOptions& options)
      : entry_(entry),
        source_(source),
        options_(options),
        official_(Checksum::parse(source.checksum)),
        url_(options.url.empty() ? source.url : options.url),
        name_(fs::path(entry.default_path).filename()),
        root_(options.root.empty() ? fs::path(entry.default_path).parent_path() : root_of(options.root, name_)),
        folder_(root_ / name_),
        archive_(root_ / archive_name(url_)) {
    if (options.checksum.empty()) {
      expected_ = official_;
    } else if (options.checksum != "any") {
      expected_ = Checksum::parse(options.checksum);
    }
  }

  FetchResult run() {
    // Before anything is written: the root may be read-only.
    if (already_there(false)) return {FetchOutcome::AlreadyThere, folder_};
    make_writable_folder(root_);
    const FileLock lock(lock_file(folder_), fmt::format("fetching {} to {}", entry_.name, folder_.string()));
    const FileLock archive_lock(lock_file(archive_), fmt::format("fetching {}", archive_.string()));
    // Another process may have been at it until now.
    if (already_there(true)) return {FetchOutcome::AlreadyThere, folder_};
    const bool downloaded = provide_archive();
    try {
      unpack_and_place();
    } catch (const BadArchive&) {
      // Left there, a bad archive would be taken again the next time. One with the checksum that was asked for would be
      // the same again.
      std::error_code ignored;
      if (downloaded && !expected_) fs::remove(archive_, ignored);
      throw;
    }
    std::error_code ignored;
    if (downloaded && !options_.keep_archive) fs::remove(archive_, ignored);
    return {FetchOutcome::Fetched, folder_};
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (!options_.quiet && options_.say) options_.say(fmt::format(text, std::forward<Args>(args)...));
  }

  bool already_there(bool complain) const {
    std::error_code error;
    if (!fs::exists(folder_, error)) return false;
    try {
      const auto report = verify(entry_.name, folder_);
      say("{} is already in {}: {}", entry_.name, folder_.string(), report.verdict());
      return true;
    } catch (const UserError& e) {
      if (complain)
        say("what is in {} cannot be used: {}", folder_.string(), without_remedy(e.what(), entry_, folder_));
      return false;
    }
  }

  /// Whether it was downloaded, and is ours to remove.
  bool provide_archive() const {
    if (fs::exists(archive_)) {
      if (!expected_ || file_checksum(archive_, expected_->kind).hex == expected_->hex) {
        say("using {}, which is there already", archive_.string());
        return false;
      }
      say("{} is there but has another checksum: it is downloaded again", archive_.string());
    }
    say("downloading {}", url_);
    auto download_options = options_.download;
    download_options.max_bytes = source_.max_bytes;  // packed it is smaller
    if (options_.quiet) {
      download_options.progress = nullptr;
      download_options.notice = nullptr;
    }
    download(url_, archive_, expected_, download_options);
    return true;
  }

  void unpack_and_place() const {
    say("unpacking {}", archive_.string());
    StagingFolder staging(folder_);
    UnpackOptions unpacking;
    unpacking.folder = name_;
    unpacking.required = file_names(entry_);
    unpacking.optional = source_.optional;
    unpacking.max_bytes = source_.max_bytes;
    unpacking.cancel = options_.download.cancel;
    unpack(archive_, staging.path(), unpacking);
    try {
      data::open_dataset(entry_.name, staging.path());
    } catch (const UserError& e) {
      throw BadArchive(fmt::format(
          "{} does not hold a well-formed data set: {}", archive_.string(),
          without_remedy(e.what(), entry_, staging.path())));
    }

    Manifest manifest;
    manifest.dataset = entry_.name;
    manifest.source = url_;
    const auto found = file_checksum(archive_, official_.kind);
    manifest.archive_checksum = found.text();
    manifest.official = found.hex == official_.hex;
    manifest.record_files(staging.path());
    manifest.write(staging.path());

    const auto old = staging.put_in_place();
    if (!old.empty()) remove_old(old);
    VerifyReport report;
    report.provenance = manifest.official ? Provenance::Published : Provenance::Recorded;
    report.source = manifest.source;
    say("{} is in {}: {}", entry_.name, folder_.string(), report.verdict());
  }

  /// Files of the data set that could not be used go; anything else is the user's.
  void remove_old(const fs::path& old) const {
    const auto required = file_names(entry_);
    const auto is_ours = [&](const fs::directory_entry& file) {
      const auto name = file.path().filename().string();
      const auto holds = [&](const auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); };
      return name == Manifest::kFile || holds(required) || holds(source_.optional);
    };
    std::error_code error;
    if (fs::is_directory(fs::symlink_status(old)) && std::all_of(fs::directory_iterator(old), {}, is_ours)) {
      fs::remove_all(old, error);
    } else {
      say("what was in {} is now in {}", folder_.string(), old.string());
    }
  }

  const data::DatasetEntry& entry_;
  const data::DatasetArchive& source_;
  const FetchOptions& options_;
  Checksum official_;
  std::string url_;
  std::string name_;  ///< of the folder, in the archive as well
  fs::path root_;
  fs::path folder_;
  fs::path archive_;
  std::optional<Checksum> expected_;
};

/// For a data set that the user must get.
FetchResult explain(const data::DatasetEntry& entry, const FetchOptions& options) {
  if (!options.url.empty() || !options.checksum.empty()) {
    fail("{} is not downloaded by us: a URL or checksum means nothing for it", entry.name);
  }
  const fs::path folder = options.root.empty() ? fs::path(entry.default_path) : options.root;
  const auto say = [&](const std::string& line) {
    if (options.say) options.say(line);
  };
  std::error_code error;
  if (fs::exists(folder, error)) {
    try {
      VerifyOptions quick;
      quick.headers = false;
      const auto report = verify(entry.name, folder, quick);
      if (!options.quiet) say(fmt::format("{} is already in {}: {}", entry.name, folder.string(), report.verdict()));
      return {FetchOutcome::AlreadyThere, folder};
    } catch (const UserError& e) {
      say(fmt::format("what is in {} cannot be used: {}", folder.string(), e.what()));
    }
  }
  say(data::instructions(entry));
  return {FetchOutcome::Instructions, folder};
}

}  // namespace

FetchResult fetch(const std::string& name, const FetchOptions& options) {
  const auto& entry = data::dataset(name);
  const auto& archive = entry.origin.archive;
  return archive ? Fetch(entry, *archive, options).run() : explain(entry, options);
}

}  // namespace sgdph::lab::fetch
