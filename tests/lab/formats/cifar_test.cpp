#include "formats/cifar.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::test::cifar_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;

std::string cifar_error(const std::string& bytes, CifarFormat format) {
  CifarImages images;
  const auto text = error_of([&] { append_cifar(bytes, format, "x.bin", images); });
  EXPECT_TRUE(images.labels.empty() && images.pixels.empty());
  return text;
}

TEST(Cifar, AppendsTheRecordsOfBothKinds) {
  CifarImages images;
  const auto a = std::string(kCifarPixels, 'a');
  const auto b = std::string(kCifarPixels, 'b');
  append_cifar("\x03" + a + "\x09" + b, CifarFormat::kCifar10, "x", images);
  append_cifar("\x13\x63" + b, CifarFormat::kCifar100, "y", images);
  EXPECT_EQ(images.labels, (std::vector<uint8_t>{3, 9, 99}));
  EXPECT_EQ(images.pixels, a + b + b);
}

TEST(Cifar, RefusesEachBadFile) {
  const auto image = std::string(kCifarPixels, 'a');
  EXPECT_EQ(cifar_error("", CifarFormat::kCifar10), "x.bin is empty; get the file again");
  EXPECT_EQ(
      cifar_error("\x03" + image + "\x03", CifarFormat::kCifar10),
      "x.bin: its 3074 bytes are no multiple of a CIFAR-10 record's 3073: it is truncated or of another format; get "
      "the "
      "file again");
  EXPECT_TRUE(contains(cifar_error("\x03" + image, CifarFormat::kCifar100), "a CIFAR-100 record's 3074"));
  EXPECT_EQ(
      cifar_error("\x03" + image + "\x0A" + image, CifarFormat::kCifar10),
      "x.bin: record 1 has the label 10, CIFAR-10 allows 0 to 9: it is damaged or of another format; get the file "
      "again");
  EXPECT_TRUE(contains(
      cifar_error("\x14\x63" + image, CifarFormat::kCifar100),
      "record 0 has the coarse label 20, CIFAR-100 allows 0 to 19"));
  EXPECT_TRUE(contains(cifar_error("\x13\x64" + image, CifarFormat::kCifar100), "record 0 has the fine label 100"));
}

}  // namespace
}  // namespace sgdph::test::cifar_test
