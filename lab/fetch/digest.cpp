#include "fetch/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace sgdph::lab::fetch {
namespace {

constexpr size_t kDigestPiece = size_t{1} << 20;

const char* prefix(DigestKind kind) {
  return kind == DigestKind::Md5 ? "md5" : "sha256";
}

size_t digits(DigestKind kind) {
  return kind == DigestKind::Md5 ? 32 : 64;
}

}  // namespace

struct Digest::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Digest::Digest(DigestKind kind) : context_(std::make_unique<Context>()) {
  if (context_->evp == nullptr) throw std::bad_alloc();
  if (EVP_DigestInit_ex(context_->evp, kind == DigestKind::Md5 ? EVP_md5() : EVP_sha256(), nullptr) != 1) {
    fail("OpenSSL refuses {} on this machine (its FIPS mode does so for MD5)", prefix(kind));
  }
}

Digest::~Digest() = default;

void Digest::update(std::string_view bytes) {
  if (EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) != 1) fail("OpenSSL cannot compute a checksum");
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context_->evp, bytes.data(), &size) != 1) fail("OpenSSL cannot compute a checksum");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

std::string file_digest(const std::filesystem::path& path, DigestKind kind) {
  check_regular(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot open {}: {}", path.string(), std::strerror(errno));
  Digest digest(kind);
  std::vector<char> piece(kDigestPiece);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    digest.update({piece.data(), static_cast<size_t>(in.gcount())});
  }
  // A folder opens, too, and fails only here.
  if (!in.eof() || in.bad()) fail("cannot read {}: {}", path.string(), std::strerror(errno));
  return digest.finish();
}

Checksum Checksum::parse(const std::string& text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  if (colon == std::string::npos || (name != "md5" && name != "sha256")) {
    fail("checksum '{}' is not of the form md5:<32 hexadecimal digits> or sha256:<64 hexadecimal digits>", text);
  }
  Checksum checksum{name == "md5" ? DigestKind::Md5 : DigestKind::Sha256, text.substr(colon + 1)};
  auto& hex = checksum.hex;
  const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
  if (hex.size() != digits(checksum.kind) || !std::all_of(hex.begin(), hex.end(), is_digit)) {
    fail("checksum '{}' must have {} hexadecimal digits after '{}:'", text, digits(checksum.kind), name);
  }
  std::transform(hex.begin(), hex.end(), hex.begin(), [](unsigned char c) { return std::tolower(c); });
  return checksum;
}

std::string Checksum::text() const {
  return fmt::format("{}:{}", prefix(kind), hex);
}

Checksum file_checksum(const std::filesystem::path& path, DigestKind kind) {
  return {kind, file_digest(path, kind)};
}

}  // namespace sgdph::lab::fetch
