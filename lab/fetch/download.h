#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "fetch/cancel.h"
#include "fetch/digest.h"

namespace sgdph::lab::fetch {

struct DownloadOptions {
  int retries = 5;                          ///< after a transient failure that brought nothing new
  std::chrono::milliseconds backoff{1000};  ///< before the first retry; doubles each time
  std::chrono::milliseconds connect_timeout{20000};
  std::chrono::seconds stall_timeout{30};  ///< without `stall_bytes` per second for so long, a connection is given up
  int64_t stall_bytes = 1000;
  int64_t max_bytes = int64_t{1} << 40;  ///< a server that sends more, or says that it will, is refused

  std::function<void(int64_t bytes, int64_t total)> progress;  ///< total 0: the server does not say
  std::function<void(const std::string& line)> notice;         ///< retries, and why it starts anew
  const std::atomic<bool>* cancel = nullptr;                   ///< set, the download stops with Interrupted
};

/// Downloads to `<target>.part` and renames that to `target` when it is complete and has the checksum.
///
/// What an earlier call left in `<target>.part` is continued if the server still has the same file: its ETag or date is
/// kept in `<target>.part.json` and sent as If-Range. A failure leaves the part for the next call, except a wrong
/// checksum, which removes it: continuing would never mend it. http and https only, also after redirects (and no way
/// back from https to http); a file:// URL must be the one given.
void download(
    const std::string& url, const std::filesystem::path& target, const std::optional<Checksum>& checksum,
    const DownloadOptions& options);

/// How far and how fast a download is: "68.1 of 161.2 MB  3.4 MB/s". What was there before counts for how far, not for
/// how fast.
class TransferText {
 public:
  /// `total` is 0 if it is not known; `now` in seconds on a clock that never jumps.
  std::string at(int64_t bytes, int64_t total, double now);

 private:
  int64_t begun_ = -1;
  double started_ = 0;
};

}  // namespace sgdph::lab::fetch
