#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "support/checks.h"
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

}  // namespace sgdph::test
