#include <gtest/gtest.h>

#include <cmath>

#include "data/jpeg.h"
#include "data/resize.h"
#include "support/checks.h"
#include "support/sample_data.h"

namespace sgdph::test::jpeg_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::data;

PixelImage noise(int width, int height) {
  PixelImage image{width, height, {}};
  Random random(3);
  for (int i = 0; i < width * height * 4; ++i) image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  return image;
}

/// The triangle filter by its definition: a weighted mean over all pixels within the limits.
double naive(const PixelImage& image, const Box& box, const Box& limits, int side, int c, int out_y, int out_x) {
  const double scale_x = box.width / side;
  const double scale_y = box.height / side;
  const double centre_x = box.x + (out_x + 0.5) * scale_x;
  const double centre_y = box.y + (out_y + 0.5) * scale_y;
  double sum = 0;
  double weights = 0;
  for (int y = 0; y < image.height; ++y) {
    if (y + 1 <= limits.y || y >= limits.y + limits.height) continue;
    const double wy = std::max(0.0, 1 - std::abs(y + 0.5 - centre_y) / std::max(1.0, scale_y));
    for (int x = 0; x < image.width; ++x) {
      if (x + 1 <= limits.x || x >= limits.x + limits.width) continue;
      const double w = wy * std::max(0.0, 1 - std::abs(x + 0.5 - centre_x) / std::max(1.0, scale_x));
      sum += w * image.pixels[static_cast<size_t>((y * image.width + x) * 4 + c)];
      weights += w;
    }
  }
  return sum / weights;
}

const Normalisation& some_normalisation() {
  static const Normalisation values{{0.1F, 0.2F, 0.3F}, {0.5F, 0.25F, 2.0F}};
  return values;
}

void expect_resized(const PixelImage& image, const Box& box, const ResizeOptions& options) {
  const int side = options.side;
  std::vector<float> out(static_cast<size_t>(3 * side * side), NAN);
  resize(image, box, options, some_normalisation(), out.data());
  const Box all{0, 0, static_cast<double>(image.width), static_cast<double>(image.height)};
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int from = options.flip ? side - 1 - x : x;
        const auto i = static_cast<size_t>(c);
        const double value = naive(image, box, options.confined ? box : all, side, c, y, from) / 255;
        const double expected = (value - some_normalisation().mean[i]) / some_normalisation().deviation[i];
        ASSERT_NEAR(out[static_cast<size_t>((c * side + y) * side + x)], expected, 1e-4) << c << ' ' << y << ' ' << x;
      }
    }
  }
}

TEST(Resize, ShrinksAsTheDefinition) {
  expect_resized(noise(50, 40), {0, 0, 50, 40}, {16, false, false});
  expect_resized(noise(50, 40), {7.25, 3.5, 37.5, 30.125}, {16, false, false});
}

TEST(Resize, EnlargesAsTheDefinition) {
  expect_resized(noise(9, 7), {0, 0, 9, 7}, {16, false, false});
  expect_resized(noise(1, 1), {0, 0, 1, 1}, {5, false, false});
}

TEST(Resize, ConfinedLooksAtNothingBeyondTheBox) {
  expect_resized(noise(50, 40), {10, 8, 30, 20}, {16, false, true});
  expect_resized(noise(50, 40), {10.5, 8.25, 4, 3}, {16, false, true});
}

TEST(Resize, Flips) {
  expect_resized(noise(20, 30), {2, 3, 17, 20}, {16, true, true});
}

TEST(Resize, OfTheSameSizeIsTheImage) {
  const auto image = noise(12, 12);
  std::vector<float> out(3 * 144);
  resize(image, {0, 0, 12, 12}, {12, false, false}, {{0, 0, 0}, {1, 1, 1}}, out.data());
  for (size_t i = 0; i < 144; ++i) EXPECT_NEAR(out[144 + i] * 255, image.pixels[i * 4 + 1], 1e-4);
}

TEST(RandomResizedCrop, StaysInsideWithTheRightAreasAndShapes) {
  double smallest = 1;
  double largest = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const auto box = random_resized_crop(500, 375, random);
    ASSERT_GE(box.x, 0);
    ASSERT_GE(box.y, 0);
    ASSERT_LE(box.x + box.width, 500);
    ASSERT_LE(box.y + box.height, 375);
    ASSERT_EQ(box.x + box.y + box.width + box.height, std::round(box.x + box.y + box.width + box.height));
    ASSERT_GT(box.width / box.height, 0.74);
    ASSERT_LT(box.width / box.height, 1.35);
    const double area = box.width * box.height / (500 * 375);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
  }
  EXPECT_NEAR(smallest, 0.08, 0.005);
  EXPECT_NEAR(largest, 1, 0.02);
}

TEST(RandomResizedCrop, FallsBackToTheCentreOfOutlandishShapes) {
  Random random(1);
  const auto wide = random_resized_crop(1000, 9, random);
  EXPECT_EQ(wide.width, 12);
  EXPECT_EQ(wide.height, 9);
  EXPECT_EQ(wide.x, 494);
  const auto high = random_resized_crop(9, 1000, random);
  EXPECT_EQ(high.width, 9);
  EXPECT_EQ(high.height, 12);
  EXPECT_EQ(high.y, 494);
  const auto dot = random_resized_crop(1, 1, random);
  EXPECT_EQ(dot.width * dot.height, 1);
}

TEST(CentreCrop, IsTheMiddleOfTheResizedPicture) {
  const auto box = centre_crop(512, 1024, 256, 224);  // resized by one half to 256 x 512
  EXPECT_DOUBLE_EQ(box.x, 32);
  EXPECT_DOUBLE_EQ(box.y, 288);
  EXPECT_DOUBLE_EQ(box.width, 448);
  EXPECT_DOUBLE_EQ(box.height, 448);
}

Box whole(const Jpeg& jpeg) {
  return {0, 0, static_cast<double>(jpeg.width()), static_cast<double>(jpeg.height())};
}

std::string gradient(int width, int height) {
  std::string pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels += static_cast<char>(x * 255 / width);
      pixels += static_cast<char>(y * 255 / height);
      pixels += static_cast<char>(128);
    }
  }
  return pixels;
}

TEST(Jpeg, DecodesTheColoursOfEveryPixel) {
  const auto pixels = gradient(64, 48);
  const auto bytes = encode_jpeg(pixels, 64, 48, 3, 100);
  const Jpeg jpeg(bytes, "x");
  PixelImage image;
  jpeg.decode(whole(jpeg), 224, image);
  ASSERT_EQ(image.width, 64);
  ASSERT_EQ(image.height, 48);
  for (size_t i = 0; i < 64 * 48; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      ASSERT_NEAR(image.pixels[i * 4 + c], static_cast<uint8_t>(pixels[i * 3 + c]), 6) << i << ' ' << c;
    }
  }
}

TEST(Jpeg, IsDecodedAtTheSmallestSizeThatCoversTheTarget) {
  const auto bytes = encode_jpeg(gradient(401, 300), 401, 300, 3);
  const Jpeg jpeg(bytes, "x");
  PixelImage image;
  for (const auto& [side, width, height] : std::vector<std::tuple<int, int, int>>{
           {300, 401, 300}, {151, 401, 300}, {150, 201, 150}, {75, 101, 75}, {37, 51, 38}, {1, 51, 38}}) {
    const auto box = jpeg.decode(whole(jpeg), side, image);
    EXPECT_EQ(image.width, width) << side;
    EXPECT_EQ(image.height, height) << side;
    EXPECT_GE(std::min(box.width, box.height), side);
  }
  const auto box = jpeg.decode({40, 80, 200, 160}, 50, image);  // by a quarter it would be 40 high
  EXPECT_EQ(image.width, 201);
  EXPECT_EQ(box.x, 20);
  EXPECT_EQ(box.y, 40);
  EXPECT_EQ(box.width, 100);
  EXPECT_EQ(box.height, 80);
}

TEST(Jpeg, ScaledDecodingShowsTheSamePicture) {
  const auto bytes = encode_jpeg(gradient(400, 300), 400, 300, 3, 95);
  const Jpeg jpeg(bytes, "x");
  const auto view = [&](int decoded_side) {
    PixelImage image;
    std::vector<float> out(3 * 32 * 32);
    const auto box = jpeg.decode({50, 30, 280, 240}, decoded_side, image);
    resize(image, box, {32, false, true}, {{0, 0, 0}, {1, 1, 1}}, out.data());
    return out;
  };
  const auto full = view(224);
  const auto quarter = view(32);
  for (size_t i = 0; i < full.size(); ++i) EXPECT_NEAR(full[i], quarter[i], 3.0 / 255);
}

TEST(Jpeg, GreyBecomesRgb) {
  const auto bytes = encode_jpeg(std::string(64 * 64, '\x50'), 64, 64, 1);
  PixelImage image;
  const Jpeg jpeg(bytes, "x");
  jpeg.decode(whole(jpeg), 224, image);
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(image.pixels[c], 0x50, 2);
}

TEST(Jpeg, InvertedCmykBecomesRgb) {
  std::string pixels;
  for (int i = 0; i < 64 * 64; ++i) pixels += {'\xC8', '\x64', '\x32', '\x80'};
  const auto bytes = encode_jpeg(pixels, 64, 64, 4, 100);
  PixelImage image;
  const Jpeg jpeg(bytes, "x");
  jpeg.decode(whole(jpeg), 224, image);
  EXPECT_NEAR(image.pixels[0], 200 * 128 / 255, 2);
  EXPECT_NEAR(image.pixels[1], 100 * 128 / 255, 2);
  EXPECT_NEAR(image.pixels[2], 50 * 128 / 255, 2);
}

std::string decode_error(const std::string& bytes) {
  return error_of([&] {
    const Jpeg jpeg(bytes, "a/b.JPEG");
    PixelImage image;
    jpeg.decode(whole(jpeg), 224, image);
  });
}

TEST(Jpeg, TruncatedOrDamagedDataIsRefusedByName) {
  const auto bytes = sample_jpeg(100, 80, 3, 1);
  EXPECT_EQ(decode_error(bytes), "");
  for (const size_t length : {bytes.size() - 200, bytes.size() / 2, size_t{30}, size_t{3}}) {
    const auto text = decode_error(bytes.substr(0, length));
    EXPECT_EQ(text.rfind("a/b.JPEG: damaged JPEG (", 0), 0U) << length << ": " << text;
    EXPECT_TRUE(contains(text, "--skip-damaged"));
    EXPECT_EQ(decode_error(bytes), "") << "after damage";
  }
  auto zeros = bytes;
  std::fill(zeros.begin() + static_cast<int64_t>(bytes.size() / 2), zeros.end() - 100, '\xff');
  EXPECT_TRUE(contains(decode_error(zeros), "a/b.JPEG: damaged JPEG (")) << decode_error(zeros);
}

TEST(Jpeg, StrayBytesAfterTheDataAreHarmless) {
  auto bytes = sample_jpeg(100, 80, 3, 1);
  bytes.insert(bytes.size() - 2, std::string(5, '\x01'));  // before the end marker: a warning of libjpeg
  EXPECT_EQ(decode_error(bytes), "");
  EXPECT_EQ(decode_error(bytes + "thumbnail"), "");
}

TEST(Jpeg, WhatIsNoJpegIsSaidSo) {
  EXPECT_TRUE(contains(decode_error("\x89PNG\r\n"), "a/b.JPEG is not a JPEG: it begins with \"\\x89PNG\""))
      << decode_error("\x89PNG\r\n");
  EXPECT_TRUE(contains(decode_error(""), "a/b.JPEG is not a JPEG: it is empty"));
}

TEST(Jpeg, AbsurdSizesAreRefusedBeforeAllocating) {
  auto bytes = sample_jpeg(100, 80, 3, 1);
  const auto frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = '\xff';  // height and width
  EXPECT_TRUE(contains(decode_error(bytes), "damaged JPEG (")) << decode_error(bytes);
  bytes[frame + 5] = bytes[frame + 7] = '\x60';
  EXPECT_TRUE(contains(decode_error(bytes), "its size is 24831 x 24831 pixels")) << decode_error(bytes);
}

}  // namespace
}  // namespace sgdph::test::jpeg_test
