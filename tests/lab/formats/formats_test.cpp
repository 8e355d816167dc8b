#include <gtest/gtest.h>

#include "formats/cifar.h"
#include "formats/csv.h"
#include "formats/idx.h"
#include "support/checks.h"
#include "support/sample_data.h"

namespace sgdph::test::formats_test {
namespace {

using namespace sgdph::lab;
using namespace std::string_literals;

std::string idx_error(const std::string& bytes) {
  return error_of([&] { parse_idx(bytes, "x"); });
}

std::string cifar_error(const std::string& bytes, CifarFormat format) {
  CifarImages images;
  const auto text = error_of([&] { append_cifar(bytes, format, "x.bin", images); });
  EXPECT_TRUE(images.labels.empty() && images.pixels.empty());
  return text;
}

std::string list_error(const std::string& bytes) {
  return error_of([&] { parse_image_list(bytes, "x.csv"); });
}

TEST(Idx, GivesSizesAndValues) {
  const auto array = parse_idx(idx_bytes({2, 3}, "abcdef"), "x");
  EXPECT_EQ(array.sizes, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(array.data, "abcdef");
}

TEST(Idx, ReadsCompressedAndPlainFilesAlike) {
  const TempFolder folder;
  const auto bytes = idx_bytes({300, 1000}, std::string(300000, 'v'));
  write_bytes(folder / "a.gz", gzip(bytes));
  write_bytes(folder / "a", bytes);
  EXPECT_EQ(read_idx_file(folder / "a.gz").data, std::string(300000, 'v'));
  EXPECT_EQ(read_idx_file(folder / "a").data, std::string(300000, 'v'));
}

TEST(Idx, RefusesEachBadHeader) {
  EXPECT_EQ(idx_error("\0\0\x08"s), "x: 3 bytes are too few for an idx file; get the file again");
  EXPECT_EQ(
      idx_error("PK\x08\x01"),
      "x is not an idx file: it begins with the bytes 80 75 instead of 0 0; get the file again");
  EXPECT_EQ(idx_error("\0\0\x0D\x01"s), "x: idx type 13 instead of 8, unsigned bytes; get the file again");
  EXPECT_EQ(idx_error("\0\0\x08\0"s), "x: an idx array of 0 dimensions instead of 1 to 4; get the file again");
  EXPECT_EQ(idx_error("\0\0\x08\xFF"s), "x: an idx array of 255 dimensions instead of 1 to 4; get the file again");
  EXPECT_EQ(
      idx_error("\0\0\x08\x02\0\0\0\x01"s),
      "x is truncated: the idx header of 2 dimensions takes 12 bytes, there are 8; get the file again");
}

TEST(Idx, RefusesTooFewAndTooManyValues) {
  EXPECT_EQ(
      idx_error(idx_bytes({2, 3}, "abcde")),
      "x is truncated: its header announces 2 x 3 values, 5 follow; get the file again");
  EXPECT_EQ(
      idx_error(idx_bytes({2, 3}, "abcdefg")),
      "x has trailing bytes: its header announces 2 x 3 values, 7 follow; get the file again");
}

TEST(Idx, RefusesSizesWhoseProductOverflows) {
  constexpr uint32_t kHalf = 1U << 31;
  // The product modulo 2^64 is 0, as many as follow.
  EXPECT_TRUE(contains(idx_error(idx_bytes({kHalf, kHalf, 4}, "")), "is truncated: its header announces 2147483648 x"));
  EXPECT_TRUE(contains(idx_error(idx_bytes({~0U, ~0U, ~0U, ~0U}, "ab")), "is truncated"));
  EXPECT_EQ(parse_idx(idx_bytes({~0U, 0, ~0U}, ""), "x").data, "");
}

TEST(Idx, NamesADamagedOrMissingFile) {
  const TempFolder folder;
  auto packed = gzip(idx_bytes({100, 100}, std::string(10000, 'v')));
  write_bytes(folder / "short.gz", packed.substr(0, packed.size() - 9));
  const auto text = error_of([&] { read_idx_file(folder / "short.gz"); });
  EXPECT_TRUE(contains(text, "short.gz is damaged: unpacking stops after")) << text;
  packed[packed.size() - 5] ^= 1;  // of the checksum
  write_bytes(folder / "flipped.gz", packed);
  EXPECT_TRUE(contains(error_of([&] { read_idx_file(folder / "flipped.gz"); }), "flipped.gz is damaged"));
  EXPECT_TRUE(contains(error_of([&] { read_idx_file(folder / "none"); }), "/none: No such file"));
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

TEST(ImageList, ToleratesWindowsLinesAndABlankLastOne) {
  for (const std::string text :
       {"filename,label\na.jpg,n1\nb.jpg,n2", "filename,label\na.jpg,n1\nb.jpg,n2\n",
        "filename,label\r\na.jpg,n1\r\nb.jpg,n2\r\n\r\n"}) {
    const auto images = parse_image_list(text, "x");
    ASSERT_EQ(images.size(), 2U);
    EXPECT_EQ(images[1].filename, "b.jpg");
    EXPECT_EQ(images[1].label, "n2");
  }
}

TEST(ImageList, RefusesEachBadLineByNumber) {
  const std::string head = "filename,label\n";
  EXPECT_EQ(
      list_error("a.jpg,n1\n"),
      "x.csv:1: the first line is \"a.jpg,n1\" instead of 'filename,label'; put that line first");
  EXPECT_TRUE(contains(list_error(""), "x.csv:1: the first line is \"\""));
  EXPECT_EQ(list_error(head), "x.csv lists no images; get the file again");
  EXPECT_EQ(
      list_error(head + "a.jpg,n1\nb.jpg\n"),
      "x.csv:3: \"b.jpg\" is not of the form 'filename,label'; correct the line");
  EXPECT_TRUE(contains(list_error(head + "a,b,c\n"), "x.csv:2: \"a,b,c\" is not of the form"));
  EXPECT_TRUE(contains(list_error(head + "\na.jpg,n1\n"), "x.csv:2: \"\" is not of the form"));
  EXPECT_EQ(list_error(head + ",n1\n"), "x.csv:2: the filename is empty; correct the line");
  EXPECT_EQ(list_error(head + "a.jpg,\n"), "x.csv:2: the label is empty; correct the line");
  for (const std::string name : {"../a.jpg", "/etc/passwd", "a\\\\b.jpg", "..", "."}) {
    EXPECT_TRUE(contains(list_error(head + name + ",n1\n"), "is not a plain name; leave out the folders")) << name;
  }
  EXPECT_TRUE(contains(list_error(head + "a\rb.jpg,n1\n"), "has a control character"));
}

}  // namespace
}  // namespace sgdph::test::formats_test
