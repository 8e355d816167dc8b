#include "fetch/verify.h"

#include <algorithm>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "data/datasets.h"
#include "data/jpeg.h"
#include "fetch/digest.h"
#include "fetch/manifest.h"

namespace sgdph::lab::fetch {
namespace {

namespace fs = std::filesystem;

void stop_if_cancelled(const VerifyOptions& options) {
  if (is_set(options.cancel)) throw Interrupted("interrupted while verifying");
}

bool has_published_digests(const data::DatasetEntry& entry, const fs::path& folder) {
  const auto published = [&](const data::DatasetFile& file) {
    const auto path = folder / file.name;
    std::error_code error;
    if (file.md5.empty() || !fs::exists(path, error)) return false;  // unpacked, perhaps; the form decides
    return std::find(file.md5.begin(), file.md5.end(), file_digest(path, DigestKind::Md5)) != file.md5.end();
  };
  const auto all = [&](const data::DatasetPart& part) {
    return std::all_of(part.files.begin(), part.files.end(), published);
  };
  return all(entry.train) && all(entry.test);
}

Provenance check_digests(const data::DatasetEntry& entry, const fs::path& folder, VerifyReport& report) {
  if (const auto manifest = Manifest::read(folder)) {
    if (manifest->dataset != entry.name) {
      fail("{} is of {}, not of {}", (folder / Manifest::kFile).string(), manifest->dataset, entry.name);
    }
    manifest->check_files(folder);
    for (const auto* part : {&entry.train, &entry.test}) {
      for (const auto& file : part->files) {
        if (manifest->files.count(file.name) != 0) continue;
        fail("{} does not list {}", (folder / Manifest::kFile).string(), file.name);
      }
    }
    report.source = manifest->source;
    return manifest->official ? Provenance::Published : Provenance::Recorded;
  }
  return has_published_digests(entry, folder) ? Provenance::Published : Provenance::Unknown;
}

int64_t read_headers(const std::vector<fs::path>& files, const VerifyOptions& options) {
  int64_t done = 0;
  for (const auto& file : files) {
    stop_if_cancelled(options);
    const auto bytes = read_file(file);
    const data::Jpeg header(bytes, file.string());
    ++done;
    if (options.progress) options.progress(done, static_cast<int64_t>(files.size()));
  }
  return done;
}

int64_t decode_all(const data::DatasetPair& pair, const VerifyOptions& options) {
  const auto total = pair.train->size() + pair.test->size();
  std::vector<float> image(static_cast<size_t>(pair.train->shape().values()));
  int64_t done = 0;
  for (const auto* part : {pair.train.get(), pair.test.get()}) {
    for (int64_t i = 0; i < part->size(); ++i) {
      stop_if_cancelled(options);
      part->read(i, nullptr, image.data());
      ++done;
      if (options.progress) options.progress(done, total);
    }
  }
  return done;
}

}  // namespace

std::string VerifyReport::verdict() const {
  const std::string unknown = "checksums unknown (not the official order or an own copy)";
  switch (provenance) {
    case Provenance::Published: return "matches the published files";
    case Provenance::Recorded: return fmt::format("well formed and as fetched from {}; {}", source, unknown);
    case Provenance::Unknown: break;
  }
  return "well formed; " + unknown;
}

std::vector<std::string> VerifyReport::lines() const {
  std::vector<std::string> lines{fmt::format("{} in {}: {}", name, path.string(), verdict())};
  lines.push_back(fmt::format("{} training and {} test images, {} classes", train, test, classes));
  const auto& published = data::dataset(name);
  if (train != published.train.images || test != published.test.images) {
    lines.back() += fmt::format(" (published: {} and {})", published.train.images, published.test.images);
  }
  if (headers > 0) lines.push_back(fmt::format("{} JPEG headers read", headers));
  if (decoded > 0) lines.push_back(fmt::format("{} images decoded", decoded));
  return lines;
}

VerifyReport verify(const std::string& name, const fs::path& path, const VerifyOptions& options) {
  const auto& entry = data::dataset(name);
  VerifyReport report;
  report.name = name;
  report.path = data::data_folder(entry, path);
  report.provenance = check_digests(entry, report.path, report);
  stop_if_cancelled(options);
  const auto pair = data::open_dataset(name, path.empty() ? path : report.path);
  report.classes = pair.train->classes();
  report.train = pair.train->size();
  report.test = pair.test->size();
  if (options.decode) {
    report.decoded = decode_all(pair, options);
  } else if (options.headers && entry.pictures != nullptr) {
    report.headers = read_headers(entry.pictures(entry, report.path), options);
  }
  return report;
}

}  // namespace sgdph::lab::fetch
