#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "fetch/download.h"
#include "fetch/fetch.h"
#include "support/checks.h"
#include "support/http_server.h"
#include "support/sample_data.h"

namespace sgdph::test {

/// Bytes that do not repeat and do not compress.
inline std::string noise(size_t count, uint64_t seed = 1) {
  std::string bytes(count, '\0');
  for (auto& byte : bytes) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

struct ArchiveItem {
  std::string name;
  std::string content;
  unsigned type = AE_IFREG;
  std::string symlink = {};
  std::string hardlink = {};
};

/// By the ending: .tar.gz, .tar.xz, .tar.bz2, .tar or .zip. Takes any name, however wicked. A tar is filled up with
/// zeros to whole blocks.
inline void make_archive(const std::filesystem::path& path, const std::vector<ArchiveItem>& items) {
  auto* writer = archive_write_new();
  const auto ending = path.extension();
  if (ending == ".zip") {
    archive_write_set_format_zip(writer);
  } else {
    archive_write_set_format_pax_restricted(writer);
  }
  if (ending == ".gz") archive_write_add_filter_gzip(writer);
  if (ending == ".xz") archive_write_add_filter_xz(writer);
  if (ending == ".bz2") archive_write_add_filter_bzip2(writer);
  ASSERT_EQ(archive_write_open_filename(writer, path.c_str()), ARCHIVE_OK) << archive_error_string(writer);
  for (const auto& item : items) {
    auto* entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.name.c_str());
    archive_entry_set_filetype(entry, item.type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<int64_t>(item.content.size()));
    if (!item.symlink.empty()) archive_entry_set_symlink(entry, item.symlink.c_str());
    if (!item.hardlink.empty()) archive_entry_set_hardlink(entry, item.hardlink.c_str());
    ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK) << archive_error_string(writer);
    archive_write_data(writer, item.content.data(), item.content.size());
    archive_entry_free(entry);
  }
  ASSERT_EQ(archive_write_close(writer), ARCHIVE_OK);
  archive_write_free(writer);
}

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
