#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "fetch/download.h"
#include "lab/fetch/scratch.h"
#include "support/http_server.h"

namespace sgdph::test {

/// Of the file that is served.
constexpr int64_t kSize = 300000;

/// A server, and a folder to download a file of noise to.
class ServedFile : public ::testing::Test {
 protected:
  ServedFile() {
    options_.retries = 0;
    options_.backoff = std::chrono::milliseconds(1);
  }

  HttpResource resource(uint64_t seed = 1) const {
    HttpResource resource;
    resource.body = noise(kSize, seed);
    return resource;
  }
  void get(const std::string& path = "/file", const std::optional<lab::fetch::Checksum>& checksum = {}) {
    lab::fetch::download(server_.url(path), target_, checksum, options_);
  }
  /// Half of the file, as left by a connection that was cut.
  void get_half() {
    auto cut = resource();
    cut.cut_after = kSize / 2;
    server_.serve("/file", cut);
    ASSERT_NE(error_of([this] { get(); }), "");
    ASSERT_EQ(std::filesystem::file_size(part_), kSize / 2);
  }

  TempFolder scratch_;
  HttpServer server_;
  std::filesystem::path target_ = scratch_ / "file";
  std::filesystem::path part_ = scratch_ / "file.part";
  lab::fetch::DownloadOptions options_;
};

}  // namespace sgdph::test
