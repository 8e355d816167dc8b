#pragma once

#include <gtest/gtest.h>

#include "fetch/fetch.h"
#include "lab/fetch/scratch.h"
#include "support/http_server.h"
#include "support/sample_data.h"

namespace sgdph::test {

/// What `verify` says of files nobody published.
constexpr const char* kUnknown = "checksums unknown (not the official order or an own copy)";

/// A server with a small CIFAR-100, and an empty folder to fetch it to.
class ServedCifar100 : public ::testing::Test {
 protected:
  ServedCifar100() {
    write_cifar100(source_ / "set", 200, 100, 1);
    train_ = lab::read_file(source_ / "set" / "train.bin");
    test_ = lab::read_file(source_ / "set" / "test.bin");
    options_.root = root_.path();
    options_.url = server_.url("/cifar-100-binary.tar.gz");
    options_.checksum = "any";
    options_.download.retries = 0;
    options_.say = [this](const std::string& line) { said_ += line + "\n"; };
    serve(train_, test_);
  }

  void serve(const std::string& train, const std::string& test_part) {
    make_archive(
        source_ / "a.tar.gz", {{"cifar-100-binary/train.bin", train},
                               {"cifar-100-binary/test.bin", test_part},
                               {"cifar-100-binary/fine_label_names.txt", "apple\n"},
                               {"cifar-100-binary/file.txt~", "not expected"}});
    resource_.body = lab::read_file(source_ / "a.tar.gz");
    server_.serve("/cifar-100-binary.tar.gz", resource_);
  }
  lab::fetch::FetchOutcome get() { return lab::fetch::fetch("cifar100", options_).outcome; }

  TempFolder source_;
  TempFolder root_;
  HttpServer server_;
  HttpResource resource_;
  std::string train_;
  std::string test_;
  lab::fetch::FetchOptions options_;
  std::string said_;
  std::filesystem::path folder_ = root_ / "cifar-100-binary";
};

}  // namespace sgdph::test
