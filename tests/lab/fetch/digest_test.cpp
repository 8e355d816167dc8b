#include "fetch/digest.h"

#include <gtest/gtest.h>

#include "support/checks.h"

namespace sgdph::lab::fetch::digest_test {
namespace {

using test::contains;
using test::error_of;

TEST(ADigest, IsThatOfTheStandards) {
  const auto hex = [](DigestKind kind, std::initializer_list<std::string_view> pieces) {
    Digest digest(kind);
    for (const auto piece : pieces) digest.update(piece);
    return digest.finish();
  };
  EXPECT_EQ(hex(DigestKind::Md5, {}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex(DigestKind::Md5, {"a", "bc"}), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex(DigestKind::Sha256, {"abc"}), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(AChecksum, IsReadInAnyCaseAndRefusedInAnyOtherForm) {
  EXPECT_EQ(Checksum::parse("md5:900150983CD24FB0D6963F7D28E17F72").text(), "md5:900150983cd24fb0d6963f7d28e17f72");
  for (const auto* wrong :
       {"", "any", "md5", "md5:", "md5:12", "sha1:900150983cd24fb0d6963f7d28e17f72",
        "sha256:900150983cd24fb0d6963f7d28e17f72", "md5:g00150983cd24fb0d6963f7d28e17f72"}) {
    EXPECT_TRUE(contains(error_of([&] { Checksum::parse(wrong); }), fmt::format("'{}'", wrong))) << wrong;
  }
}

TEST(ADigest, NamesAFileThatCannotBeRead) {
  EXPECT_TRUE(contains(error_of([] { file_digest("/nowhere/x", DigestKind::Md5); }), "/nowhere/x"));
  EXPECT_NE(error_of([] { file_digest("/", DigestKind::Md5); }), "");
}

}  // namespace
}  // namespace sgdph::lab::fetch::digest_test
