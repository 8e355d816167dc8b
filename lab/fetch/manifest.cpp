#include "fetch/manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "fetch/digest.h"

namespace sgdph::lab::fetch {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;

Manifest from_json(const nlohmann::json& json) {
  Manifest manifest;
  manifest.dataset = json.at("dataset");
  manifest.source = json.at("source");
  manifest.archive_checksum = json.at("archive_checksum");
  manifest.official = json.at("archive_is_official");
  for (const auto& [name, file] : json.at("files").items()) {
    manifest.files[name] = {file.at("bytes").get<int64_t>(), file.at("sha256").get<std::string>()};
  }
  return manifest;
}

}  // namespace

void Manifest::record_files(const fs::path& folder) {
  files.clear();
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = {
        static_cast<int64_t>(entry.file_size()), file_digest(entry.path(), DigestKind::Sha256)};
  }
}

void Manifest::write(const fs::path& folder) const {
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [name, file] : files) list[name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  const nlohmann::json json{
      {"format", kFormat},
      {"dataset", dataset},
      {"source", source},
      {"archive_checksum", archive_checksum},
      {"archive_is_official", official},
      {"files", list}};
  const auto text = json.dump(2) + "\n";
  write_own_file(folder / kFile, {text});
}

std::optional<Manifest> Manifest::read(const fs::path& folder) {
  const auto path = folder / kFile;
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const auto text = read_file(path);
  check_json(text, path.string());
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format") != kFormat) {
      fail(
          "{} has format {}, this version reads {}; remove it or fetch again", path.string(), json["format"].dump(),
          kFormat);
    }
    return from_json(json);
  } catch (const nlohmann::json::exception& e) {
    fail("{} is damaged ({}); remove it or fetch again", path.string(), e.what());
  }
}

void Manifest::check_files(const fs::path& folder) const {
  for (const auto& [name, expected] : files) {
    if (fs::path(name).filename() != name) fail("{} names '{}', no plain file", (folder / kFile).string(), name);
    const auto path = folder / name;
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) fail("{} is missing; fetch again", path.string());
    if (static_cast<int64_t>(bytes) != expected.bytes) {
      fail("{} is damaged: it has {} bytes, {} when it was fetched; fetch again", path.string(), bytes, expected.bytes);
    }
    const auto found = file_digest(path, DigestKind::Sha256);
    if (found != expected.sha256) {
      fail(
          "{} is damaged: its sha256 is {}, {} when it was fetched; fetch again", path.string(), found,
          expected.sha256);
    }
  }
}

}  // namespace sgdph::lab::fetch
