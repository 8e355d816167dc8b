#include "fetch/http_request.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"

namespace sgdph::lab::fetch {
namespace {

using std::chrono::milliseconds;

constexpr long kMaxRedirects = 10;
constexpr curl_off_t kLongestRetryAfter = 60;

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

bool begins_with(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// "bytes 100-199/200" or "bytes */200"; -1 where there is no number.
struct ContentRange {
  int64_t first = -1;
  int64_t total = -1;

  static ContentRange parse(const std::string& text) {
    ContentRange range;
    const auto space = text.find(' ');
    const auto slash = text.find('/');
    if (space == std::string::npos || slash == std::string::npos) return range;
    const auto span = std::string_view(text).substr(space + 1);
    range.first = number_from<int64_t>(span.substr(0, span.find('-'))).value_or(-1);
    range.total = number_from<int64_t>(std::string_view(text).substr(slash + 1)).value_or(-1);
    return range;
  }
};

/// One GET of the missing rest of a part, or of the whole where that is not to be had.
class Request {
 public:
  Request(const std::string& url, PartFile& part, const DownloadOptions& options)
      : url_(url), part_(part), options_(options), curl_(curl_easy_init()) {
    if (!curl_) throw std::bad_alloc();
  }

  RequestEnd run() {
    set_up();
    RequestEnd outcome;
    outcome.code = curl_easy_perform(curl_.get());
    if (failure_) std::rethrow_exception(failure_);
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &outcome.status);
    curl_off_t wait = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &wait);
    outcome.retry_after = milliseconds(1000 * std::clamp<curl_off_t>(wait, 0, kLongestRetryAfter));
    if (outcome.code == CURLE_ABORTED_BY_CALLBACK) {
      throw Interrupted(fmt::format("interrupted; what is in {} will be continued", part_.path().string()));
    }
    if (outcome.code != CURLE_OK) {
      outcome.text = error_[0] != '\0' ? error_.data() : curl_easy_strerror(outcome.code);
    } else if (outcome.status >= 300) {
      outcome.text = fmt::format("the server answers {}", outcome.status);
    } else if (!begun_) {
      begin();  // an empty file
    }
    outcome.range_total = ContentRange::parse(header("Content-Range")).total;
    return outcome;
  }

 private:
  void set_up() {
    auto* curl = curl_.get();
    const bool local = begins_with(url_, "file:");
    if (local) part_.remove();
    offset_ = part_.size();
    curl_easy_setopt(curl, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, local ? "file" : "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, begins_with(url_, "https:") ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, ("sgdph/" + sgdph_version()).c_str());
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_.data());
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_timeout.count()));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options_.stall_bytes));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout.count()));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Request::on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Request::on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    if (offset_ > 0) {
      // Not CURLOPT_RESUME_FROM, which makes an error of a server that sends the whole file instead.
      for (const auto& line :
           {fmt::format("Range: bytes={}-", offset_), fmt::format("If-Range: {}", part_.origin().validator)}) {
        sent_.reset(curl_slist_append(sent_.release(), line.c_str()));
      }
      curl_easy_setopt(curl, CURLOPT_HTTPHEADER, sent_.get());
    }
  }

  /// Of the last answer, after redirects; empty: it has no such header.
  std::string header(const char* name) const {
    constexpr int kLastRequest = -1;
    curl_header* found = nullptr;
    return curl_easy_header(curl_.get(), name, 0, CURLH_HEADER, kLastRequest, &found) == CURLHE_OK ? found->value : "";
  }

  /// The first bytes of the body: does it continue the part, or begin it anew?
  void begin() {
    begun_ = true;
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    keep_ = status < 300;
    if (!keep_) return;
    if (status == 206) {
      const auto range = ContentRange::parse(header("Content-Range"));
      if (offset_ == 0 || range.first != offset_) {
        part_.remove();
        fail("{} sends another part of the file than was asked for ({}); try again", url_, header("Content-Range"));
      }
      total_ = std::max(part_.origin().total, range.total);
      refuse_if_large(total_);
      return;
    }
    if (offset_ > 0 && options_.notice) options_.notice("the file on the server changed or cannot be continued; anew");
    curl_off_t length = -1;
    curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    total_ = std::max<int64_t>(length, 0);
    refuse_if_large(total_);
    // A weak ETag does not promise the same bytes.
    const auto tag = header("ETag");
    part_.restart({url_, !tag.empty() && !begins_with(tag, "W/") ? tag : header("Last-Modified"), total_});
  }

  void refuse_if_large(int64_t bytes) {
    if (bytes <= options_.max_bytes) return;
    part_.remove();
    fail("{} is larger than {} bytes, too large for what it should be; refused", url_, options_.max_bytes);
  }

  /// An exception must not pass through libcurl: it is kept, and the transfer ends.
  template <class Function>
  bool guarded(Function function) {
    try {
      function();
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  static size_t on_bytes(char* bytes, size_t, size_t count, void* self) {
    auto& request = *static_cast<Request*>(self);
    const bool good = request.guarded([&] {
      if (!request.begun_) request.begin();
      if (!request.keep_) return;
      request.refuse_if_large(request.part_.size() + static_cast<int64_t>(count));
      request.part_.append({bytes, count});
    });
    return good ? count : 0;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& request = *static_cast<Request*>(self);
    if (is_set(request.options_.cancel)) return 1;
    if (!request.keep_ || !request.options_.progress) return 0;
    return request.guarded([&] { request.options_.progress(request.part_.size(), request.total_); }) ? 0 : 1;
  }

  const std::string& url_;
  PartFile& part_;
  const DownloadOptions& options_;
  std::unique_ptr<CURL, CurlDeleter> curl_;
  std::unique_ptr<curl_slist, CurlDeleter> sent_;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::exception_ptr failure_;
  int64_t offset_ = 0;
  int64_t total_ = 0;
  bool begun_ = false;
  bool keep_ = false;
};

}  // namespace

RequestEnd request_rest(const std::string& url, PartFile& part, const DownloadOptions& options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) fail("libcurl cannot start: {}", curl_easy_strerror(ready));
  return Request(url, part, options).run();
}

}  // namespace sgdph::lab::fetch
