#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace sgdph::lab::fetch {

enum class DigestKind { Md5, Sha256 };

/// MD5 and SHA-256 of a stream, in lower-case hexadecimal.
class Digest {
 public:
  explicit Digest(DigestKind kind);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void update(std::string_view bytes);
  /// Of all bytes so far. Call it once, last.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Reads the file piece by piece; a UserError names it if it cannot be read.
std::string file_digest(const std::filesystem::path& path, DigestKind kind);

/// A digest that a file is expected to have, written as md5:<32 digits> or sha256:<64 digits>.
struct Checksum {
  DigestKind kind = DigestKind::Sha256;
  std::string hex;

  static Checksum parse(const std::string& text);
  std::string text() const;
};

Checksum file_checksum(const std::filesystem::path& path, DigestKind kind);

}  // namespace sgdph::lab::fetch
