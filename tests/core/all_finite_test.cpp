// The search for non-finite values finds each, wherever it stands, and nothing else.

#include <sgdph/detail/finite.h>

#include "kernels/all_finite.h"
#include "kernels/simd.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sgdph::test::all_finite_test {
namespace {

using detail::count_non_finite;
using kernels::all_finite;
using kernels::all_finite_takes;

constexpr double kInf = std::numeric_limits<double>::infinity();
const auto kTypes = {torch::kFloat64, torch::kFloat32, torch::kFloat16, torch::kBFloat16};

/// The largest and smallest values of a type, with both signs: all bits but one of an exponent, or none.
at::Tensor extremes(at::ScalarType type) {
  const auto bits = [&](auto largest) {
    using Word = decltype(largest);
    const auto sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
    auto words = torch::empty({6}, torch::dtype(c10::CppTypeToScalarType<std::make_signed_t<Word>>::value));
    const Word values[] = {largest, static_cast<Word>(largest | sign), 0, sign, 1, static_cast<Word>(1 | sign)};
    std::memcpy(words.data_ptr(), values, sizeof(values));
    return words.view(type);
  };
  if (type == torch::kFloat64) return bits(uint64_t{0x7FEFFFFFFFFFFFFF});
  if (type == torch::kFloat32) return bits(uint32_t{0x7F7FFFFF});
  return bits(static_cast<uint16_t>(type == torch::kFloat16 ? 0x7BFF : 0x7F7F));
}

TEST(AllFinite, TakesTheLargestAndSmallestValuesForFinite) {
  for (const auto type : kTypes) {
    const auto values = extremes(type);
    ASSERT_TRUE(all_finite_takes(values));
    EXPECT_TRUE(values.isfinite().all().item<bool>()) << type;
    EXPECT_TRUE(all_finite(values)) << type;
    EXPECT_EQ(count_non_finite({values.repeat(1000)}), 0) << type;
  }
}

TEST(AllFinite, FindsOneValueAtAnyPlace) {
  for (const auto type : kTypes) {
    for (const double poison : {std::nan(""), kInf, -kInf}) {
      for (const int64_t count : {1, 7, 16, 37}) {
        for (int64_t i = 0; i < count; ++i) {
          auto values = torch::ones({count}, torch::dtype(type));
          ASSERT_TRUE(all_finite(values));
          values[i] = poison;
          for (const auto simd : {kernels::Simd::Portable, kernels::simd()}) {
            const auto best = kernels::simd();
            kernels::use_simd(simd);
            EXPECT_FALSE(all_finite(values)) << type << " " << poison << " at " << i << " of " << count;
            kernels::use_simd(best);
          }
          ASSERT_EQ(count_non_finite({values}), 1);
        }
      }
    }
  }
}

TEST(AllFinite, FindsAValueInAnyThreadsPart) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(3);
  for (const int64_t place : {0, 99999, 100000, 299999}) {
    auto values = torch::ones({300000});
    EXPECT_TRUE(all_finite(values));
    values[place] = kInf;
    EXPECT_FALSE(all_finite(values)) << place;
  }
  at::set_num_threads(threads);
}

TEST(CountNonFinite, CountsInAllTensorsWhateverTheirLayout) {
  auto dense = torch::ones({4, 6});
  dense[1][2] = std::nan("");
  auto gaps = torch::ones({4, 6}).slice(1, 0, 6, 2);
  gaps[3] = kInf;  // three values
  const auto repeated = torch::full({1}, -kInf).expand({5});
  auto channels_last = torch::ones({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  channels_last[0][1][2][3] = kInf;
  auto complex = torch::ones({3}, torch::kComplexFloat);
  complex[1] = c10::complex<float>(0, std::numeric_limits<float>::infinity());
  EXPECT_EQ(count_non_finite({dense, gaps, repeated, channels_last, complex}), 1 + 3 + 5 + 1 + 1);
  EXPECT_EQ(count_non_finite({{}, torch::ones({0}), torch::arange(5), torch::ones({3}).expand({4, 3})}), 0);
}

TEST(CountNonFinite, IsNotMisledByASumThatOverflows) {
  for (const auto type : kTypes) EXPECT_EQ(count_non_finite({extremes(type)[0].expand({9})}), 0) << type;
  const auto large = torch::full({2, 1}, 3e38f).expand({2, 9});
  EXPECT_EQ(count_non_finite({large}), 0);
}

}  // namespace
}  // namespace sgdph::test::all_finite_test
