#include "fetch/download.h"

#include "base/clock.h"
#include "base/error.h"
#include "fetch/http_request.h"
#include "fetch/part_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

namespace sgdph::lab::fetch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestWait{60000};

bool transient(const RequestEnd& outcome) {
  switch (outcome.code) {
    case CURLE_OK: break;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
  const std::array<long, 7> statuses{408, 425, 429, 500, 502, 503, 504};
  return std::find(statuses.begin(), statuses.end(), outcome.status) != statuses.end();
}

void wait(milliseconds time, const DownloadOptions& options, const PartFile& part) {
  const double end = seconds_now() + std::chrono::duration<double>(time).count();
  while (seconds_now() < end) {
    if (is_set(options.cancel)) {
      throw Interrupted(fmt::format("interrupted; what is in {} will be continued", part.path().string()));
    }
    std::this_thread::sleep_for(std::min(time, milliseconds(50)));
  }
}

/// Requests until the part is complete.
void complete(const std::string& url, PartFile& part, const DownloadOptions& options) {
  int64_t most = part.size();
  for (int failures = 0;;) {
    const auto before = part.size();
    auto outcome = request_rest(url, part, options);
    if (outcome.text.empty()) {
      if (part.origin().total == 0 || part.size() == part.origin().total) return;
      outcome.code = CURLE_PARTIAL_FILE;
      outcome.text = fmt::format("{} bytes came of {}", part.size(), part.origin().total);
      if (part.size() > part.origin().total) part.remove();
    } else if (outcome.code == CURLE_OK && outcome.status == 416 && before > 0) {
      // Nothing follows the part: it is the whole file, or one that the server no longer has.
      if (before == part.origin().total && before == outcome.range_total) return;
      part.remove();
      continue;
    }
    // Whatever brings the file further is a success; a server that fails at the same place every time is not.
    failures = part.size() > most ? 1 : failures + 1;
    most = std::max(most, part.size());
    if (!transient(outcome) || failures > options.retries) {
      fail(
          "cannot download {}: {}{}", url, outcome.text,
          part.size() > 0 ? fmt::format("; the {} bytes that came will be continued", part.size()) : "");
    }
    const auto pause = std::min(kLongestWait, options.backoff * (int64_t{1} << std::min(failures - 1, 10)));
    if (options.notice) options.notice(fmt::format("{}; trying again", outcome.text));
    wait(std::max(pause, outcome.retry_after), options, part);
  }
}

constexpr double kMegabyte = 1e6;

}  // namespace

void download(
    const std::string& url, const std::filesystem::path& target, const std::optional<Checksum>& checksum,
    const DownloadOptions& options) {
  PartFile part(target);
  part.keep_only(url);
  complete(url, part, options);
  if (options.progress) options.progress(part.size(), part.size());
  if (checksum) {
    const auto found = file_checksum(part.path(), checksum->kind);
    if (found.hex != checksum->hex) {
      part.remove();
      fail("{} has the checksum {}, expected {}; it was removed", url, found.text(), checksum->text());
    }
  }
  part.put_in_place();
}

std::string TransferText::at(int64_t bytes, int64_t total, double now) {
  // A download that starts anew begins again here as well.
  if (begun_ < 0 || bytes < begun_) {
    begun_ = bytes;
    started_ = now;
  }
  const double speed = now > started_ ? static_cast<double>(bytes - begun_) / (now - started_) : 0;
  const auto rate = speed > 0 ? fmt::format("  {:.1f} MB/s", speed / kMegabyte) : "";
  const auto whole = total > 0 ? fmt::format(" of {:.1f}", static_cast<double>(total) / kMegabyte) : "";
  return fmt::format("{:.1f}{} MB{}", static_cast<double>(bytes) / kMegabyte, whole, rate);
}

}  // namespace sgdph::lab::fetch
