#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "fetch/download.h"

namespace sgdph::lab::fetch {

struct FetchOptions {
  std::filesystem::path root;  ///< the data set becomes a folder in it; empty: where it is looked for by default
  std::string url;             ///< of another server or a file://; empty: the official one
  std::string checksum;        ///< md5:..., sha256:... or any; empty: the official one
  bool keep_archive = false;
  bool quiet = false;

  std::function<void(const std::string& line)> say;  ///< what happens, for the user; not called if quiet
  DownloadOptions download;                          ///< with progress and cancel
};

enum class FetchOutcome {
  Fetched,
  AlreadyThere,
  Instructions,  ///< cannot be downloaded by us; how to get it was said, quiet or not
};

struct FetchResult {
  FetchOutcome outcome = FetchOutcome::Fetched;
  std::filesystem::path folder;
};

/// Downloads, checks, unpacks and verifies a data set, in this order, and puts it in place last of all: `root` holds a
/// complete data set or none. A second process that fetches the same set is refused meanwhile.
FetchResult fetch(const std::string& name, const FetchOptions& options);

}  // namespace sgdph::lab::fetch
