#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "fetch/download.h"
#include "fetch/part_file.h"

namespace sgdph::lab::fetch {

/// How a request ended.
struct RequestEnd {
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string text;          ///< what went wrong; empty: nothing
  int64_t range_total = -1;  ///< bytes of the whole file by the Content-Range header; -1: not said
  std::chrono::milliseconds retry_after{0};
};

/// One GET of the missing rest of a part, or of the whole where the rest is not to be had. What comes is in the part
/// when this returns or throws.
RequestEnd request_rest(const std::string& url, PartFile& part, const DownloadOptions& options);

}  // namespace sgdph::lab::fetch
