#include "fetch/verify.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "data/jpeg.h"
#include "data/registry.h"
#include "fetch/digest.h"
#include "fetch/manifest.h"
#include "fetch/sources.h"
#include "formats/image_list.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

void stop_if_cancelled(const VerifyOptions& options) {
  if (is_set(options.cancel)) throw Interrupted("interrupted while verifying");
}

bool has_published_digests(const Source& source, const fs::path& folder) {
  if (source.known_md5.empty()) return false;
  return std::all_of(source.known_md5.begin(), source.known_md5.end(), [&](const auto& known) {
    const auto path = folder / known.first;
    std::error_code error;
    if (!fs::exists(path, error)) return false;  // unpacked, perhaps; the form decides
    const auto& digests = known.second;
    return std::find(digests.begin(), digests.end(), file_digest(path, DigestKind::Md5)) != digests.end();
  });
}

Provenance check_digests(const Source& source, const fs::path& folder, VerifyReport& report) {
  if (const auto manifest = Manifest::read(folder)) {
    if (manifest->dataset != source.name) {
      fail("{} is of {}, not of {}", (folder / Manifest::kFile).string(), manifest->dataset, source.name);
    }
    manifest->check_files(folder);
    for (const auto& file : source.required) {
      if (manifest->files.count(file) == 0) fail("{} does not list {}", (folder / Manifest::kFile).string(), file);
    }
    report.source = manifest->source;
    return manifest->official ? Provenance::Published : Provenance::Recorded;
  }
  return has_published_digests(source, folder) ? Provenance::Published : Provenance::Unknown;
}

bool is_jpeg(const fs::path& path) {
  auto ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg";
}

/// The pictures of a set that consists of single files; empty for the others.
std::vector<fs::path> picture_files(const std::string& name, const fs::path& folder) {
  std::vector<fs::path> files;
  if (name == "mini-imagenet") {
    for (const auto* list : {"train.csv", "val.csv", "test.csv"}) {
      const auto path = folder / list;
      for (const auto& image : parse_image_list(read_file(path), path.string())) {
        files.push_back(folder / "images" / image.filename);
      }
    }
  } else if (name == "imagenet") {
    for (const auto* part : {"train", "val"}) {
      for (const auto& entry : fs::directory_iterator(folder / part)) {
        if (!entry.is_directory() || entry.path().filename().string().front() == '.') continue;
        for (const auto& file : fs::directory_iterator(entry)) {
          if (is_jpeg(file)) files.push_back(file);
        }
      }
    }
  }
  return files;
}

int64_t read_headers(const std::vector<fs::path>& files, const VerifyOptions& options) {
  int64_t done = 0;
  for (const auto& file : files) {
    stop_if_cancelled(options);
    const auto bytes = read_file(file);
    const Jpeg header(bytes, file.string());
    ++done;
    if (options.progress) options.progress(done, static_cast<int64_t>(files.size()));
  }
  return done;
}

int64_t decode_all(const DatasetPair& pair, const VerifyOptions& options) {
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
  const auto& published = source_of(name);
  if (train != published.train_images || test != published.test_images) {
    lines.back() += fmt::format(" (published: {} and {})", published.train_images, published.test_images);
  }
  if (headers > 0) lines.push_back(fmt::format("{} JPEG headers read", headers));
  if (decoded > 0) lines.push_back(fmt::format("{} images decoded", decoded));
  return lines;
}

fs::path data_folder(const std::string& name, const fs::path& path) {
  const fs::path folder = path.empty() ? fs::path(dataset_info(name).default_path) : path;
  const auto& inner = source_of(name).folder;
  std::error_code error;
  return !inner.empty() && fs::is_directory(folder / inner, error) ? folder / inner : folder;
}

VerifyReport verify(const std::string& name, const fs::path& path, const VerifyOptions& options) {
  const auto& source = source_of(name);
  VerifyReport report;
  report.name = name;
  report.path = data_folder(name, path);
  report.provenance = check_digests(source, report.path, report);
  stop_if_cancelled(options);
  const auto pair = open_dataset(name, path.empty() ? path : report.path);
  report.classes = pair.train->classes();
  report.train = pair.train->size();
  report.test = pair.test->size();
  if (options.decode) {
    report.decoded = decode_all(pair, options);
  } else if (options.headers) {
    report.headers = read_headers(picture_files(name, report.path), options);
  }
  return report;
}

}  // namespace sgdph::lab
