#include "formats/idx.h"

#include "base/error.h"
#include "base/files.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sgdph::lab::formats {
namespace {

constexpr unsigned kUnsignedByte = 8;
constexpr unsigned kMaxSizes = 4;
// MNIST and its kin need 47 MB; what unpacks to more is not one of them.
constexpr size_t kMaxUnpacked = size_t{1} << 30;

unsigned byte_at(std::string_view bytes, size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

std::string unpacked(const std::filesystem::path& path) {
  check_regular(path);
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail("cannot open {}: {}", path.string(), std::strerror(errno));
  std::string bytes;
  std::string piece(size_t{1} << 18, '\0');
  while (true) {
    const int got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    int error = Z_OK;
    const char* message = gzerror(file.get(), &error);
    // A stream that stops early gives its bytes first and then Z_BUF_ERROR.
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      fail(
          "{} is damaged: unpacking stops after {} bytes ({}); get the file again", path.string(), bytes.size(),
          error == Z_ERRNO ? std::strerror(errno) : message);
    }
    if (got == 0) return bytes;
    bytes.append(piece, 0, static_cast<size_t>(got));
    if (bytes.size() > kMaxUnpacked) {
      fail(
          "{} unpacks to more than {} bytes, too many for an idx file; get the file again", path.string(),
          kMaxUnpacked);
    }
  }
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, const std::string& where) {
  if (bytes.size() < 4) {
    fail("{}: {} bytes are too few for an idx file; get the file again", where, bytes.size());
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    fail(
        "{} is not an idx file: it begins with the bytes {} {} instead of 0 0; get the file again", where,
        byte_at(bytes, 0), byte_at(bytes, 1));
  }
  if (byte_at(bytes, 2) != kUnsignedByte) {
    fail("{}: idx type {} instead of {}, unsigned bytes; get the file again", where, byte_at(bytes, 2), kUnsignedByte);
  }
  const size_t count = byte_at(bytes, 3);
  if (count < 1 || count > kMaxSizes) {
    fail("{}: an idx array of {} dimensions instead of 1 to {}; get the file again", where, count, kMaxSizes);
  }
  const size_t header = 4 + 4 * count;
  if (bytes.size() < header) {
    fail(
        "{} is truncated: the idx header of {} dimensions takes {} bytes, there are {}; get the file again", where,
        count, header, bytes.size());
  }
  IdxArray array;
  for (size_t i = 4; i < header; i += 4) {
    array.sizes.push_back(
        byte_at(bytes, i) << 24 | byte_at(bytes, i + 1) << 16 | byte_at(bytes, i + 2) << 8 | byte_at(bytes, i + 3));
  }
  // Any product beyond the bytes present is as wrong as another, so it stops growing there and cannot overflow.
  const uint64_t present = bytes.size() - header;
  uint64_t announced = 1;
  for (const auto size : array.sizes) {
    announced = size != 0 && announced > present / size ? present + 1 : announced * size;
  }
  if (announced != present) {
    fail(
        "{} {}: its header announces {} values, {} follow; get the file again", where,
        announced > present ? "is truncated" : "has trailing bytes", fmt::join(array.sizes, " x "), present);
  }
  array.data = bytes.substr(header);
  return array;
}

IdxArray read_idx_file(const std::filesystem::path& path) {
  return parse_idx(unpacked(path), path.string());
}

}  // namespace sgdph::lab::formats
