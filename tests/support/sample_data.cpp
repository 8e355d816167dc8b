#include "support/sample_data.h"

#include <turbojpeg.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "data/dataset.h"

namespace sgdph::test {
namespace {

namespace fs = std::filesystem;
using lab::data::Random;

/// Brightness by thirds of the height, another third in each channel: five levels, so that 125 classes differ.
char pattern(int label, int channel, int y, int height, Random& random) {
  const std::array<int, 3> levels{label % 5, label / 5 % 5, (label * 3 + label / 25) % 5};
  const int third = y * 3 / height;
  const int noise = static_cast<int>(random.below(41)) - 20;
  return static_cast<char>(35 + 45 * levels[static_cast<size_t>((channel + third) % 3)] + noise);
}

/// Channel by channel.
std::string planar_image(int label, int channels, int side, Random& random) {
  std::string pixels;
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) pixels += pattern(label, c, y, side, random);
    }
  }
  return pixels;
}

void write_fashion_mnist_part(const fs::path& folder, const std::string& part, int count, Random random) {
  std::string pixels;
  std::string labels;
  for (int i = 0; i < count; ++i) {
    labels += static_cast<char>(i % 10);
    pixels += planar_image(i % 10, 1, 28, random);
  }
  const auto n = static_cast<uint32_t>(count);
  write_bytes(folder / (part + "-images-idx3-ubyte.gz"), gzip(idx_bytes({n, 28, 28}, pixels)));
  write_bytes(folder / (part + "-labels-idx1-ubyte.gz"), gzip(idx_bytes({n}, labels)));
}

std::string cifar_records(int first, int end, int classes, Random& random) {
  std::string bytes;
  for (int i = first; i < end; ++i) {
    const int label = i % classes;
    if (classes == 100) bytes += static_cast<char>(label / 5);
    bytes += static_cast<char>(label);
    bytes += planar_image(label, 3, 32, random);
  }
  return bytes;
}

}  // namespace

void write_fashion_mnist(const fs::path& folder, int train, int test, uint64_t seed) {
  fs::create_directories(folder);
  write_fashion_mnist_part(folder, "train", train, Random(seed, 0));
  write_fashion_mnist_part(folder, "t10k", test, Random(seed, 1));
}

void write_cifar10(const fs::path& folder, int train, int test, uint64_t seed) {
  fs::create_directories(folder);
  Random random(seed);
  for (int i = 0; i < 5; ++i) {
    write_bytes(
        folder / ("data_batch_" + std::to_string(i + 1) + ".bin"),
        cifar_records(train * i / 5, train * (i + 1) / 5, 10, random));
  }
  write_bytes(folder / "test_batch.bin", cifar_records(0, test, 10, random));
}

void write_cifar100(const fs::path& folder, int train, int test, uint64_t seed) {
  fs::create_directories(folder);
  Random random(seed);
  write_bytes(folder / "train.bin", cifar_records(0, train, 100, random));
  write_bytes(folder / "test.bin", cifar_records(0, test, 100, random));
}

void write_image_folder(const fs::path& root, int classes, int per_class) {
  uint64_t seed = 0;
  for (const auto* part : {"train", "val"}) {
    for (int label = 0; label < classes; ++label) {
      const auto folder = root / part / ("class_" + std::to_string(1000 + label).substr(1));
      fs::create_directories(folder);
      for (int i = 0; i < per_class; ++i, ++seed) {
        const auto jpeg = sample_jpeg(110 + i % 3 * 10, 90 + i % 2 * 50, label, seed);
        write_bytes(folder / ("image_" + std::to_string(i) + ".JPEG"), jpeg);
      }
    }
  }
}

std::string sample_jpeg(int width, int height, int label, uint64_t seed, int quality) {
  Random random(seed);
  std::string pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) pixels += pattern(label, c, y, height, random);
    }
  }
  return encode_jpeg(pixels, width, height, 3, quality);
}

std::string encode_jpeg(const std::string& pixels, int width, int height, int channels, int quality) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  const int format = channels == 1 ? TJPF_GRAY : channels == 3 ? TJPF_RGB : TJPF_CMYK;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int result = tjCompress2(
      handle.get(), reinterpret_cast<const unsigned char*>(pixels.data()), width, 0, height, format, &bytes, &size,
      channels == 1   ? TJSAMP_GRAY
      : channels == 3 ? TJSAMP_420
                      : TJSAMP_444,
      quality, 0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (result != 0) throw std::runtime_error(tjGetErrorStr2(handle.get()));
  return {reinterpret_cast<const char*>(bytes), size};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return packed;
}

std::string idx_bytes(const std::initializer_list<uint32_t>& sizes, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const auto size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xFF);
  }
  return bytes + values;
}

}  // namespace sgdph::test
