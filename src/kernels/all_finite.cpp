#include "kernels/all_finite.h"

#include "kernels/simd.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <cstdint>

namespace sgdph::kernels {
namespace {

/// Values a thread should have at least.
constexpr int64_t kGrain = 65536;

template <class Word>
SGDPH_INLINE Word carry(Word word, Word rest, Word unit) {
  return static_cast<Word>((word & rest) + unit);
}

template <class Word>
SGDPH_INLINE Word gather(const Word* words, int64_t count, Word rest, Word unit) {
  // A cache line from each of four places in turn, asked for ahead: a processor fetches more of several streams than of
  // one.
  constexpr int64_t kStreams = 4;
  constexpr int64_t kLine = 64 / sizeof(Word);
  constexpr int64_t kAhead = 8 * kLine;
  const auto part = count / (kStreams * kLine) * kLine;
  Word lanes[kLine] = {};
  for (int64_t at = 0; at < part; at += kLine) {
    for (int64_t stream = 0; stream < kStreams; ++stream) {
      const auto* const line = words + stream * part + at;
      __builtin_prefetch(line + kAhead);
      for (int64_t i = 0; i < kLine; ++i) lanes[i] = static_cast<Word>(lanes[i] | carry(line[i], rest, unit));
    }
  }
  Word carried = 0;
  for (const auto lane : lanes) carried = static_cast<Word>(carried | lane);
  for (int64_t i = kStreams * part; i < count; ++i) carried = static_cast<Word>(carried | carry(words[i], rest, unit));
  return carried;
}

template <class Word>
Word gather_portable(const Word* words, int64_t count, Word rest, Word unit) {
  return gather(words, count, rest, unit);
}

template <class Word>
SGDPH_FOR_AVX2 Word gather_avx2(const Word* words, int64_t count, Word rest, Word unit) {
  return gather(words, count, rest, unit);
}

/// Values as words of bits, of which `exponent` are those of the exponent. A value is finite unless they are all set,
/// and then one unit of the exponent more, the sign aside, carries into the sign.
template <class Word, Word exponent>
bool all_finite_words(const void* data, int64_t count) {
  constexpr auto kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  constexpr auto kRest = static_cast<Word>(~kSign);
  constexpr auto kUnit = static_cast<Word>(kSign - exponent);
  const auto* const words = static_cast<const Word*>(data);
  const auto kernel = simd() == Simd::Avx2 ? gather_avx2<Word> : gather_portable<Word>;
  std::atomic<bool> finite{true};
  at::parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    if ((kernel(words + begin, end - begin, kRest, kUnit) & kSign) != 0) finite = false;
  });
  return finite;
}

}  // namespace

bool all_finite_takes(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.is_non_overlapping_and_dense() &&
         (type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16);
}

bool all_finite(const at::Tensor& tensor) {
  const auto* const data = tensor.data_ptr();
  const auto count = tensor.numel();
  switch (tensor.scalar_type()) {
    case at::kFloat: return all_finite_words<uint32_t, 0x7F800000>(data, count);
    case at::kDouble: return all_finite_words<uint64_t, 0x7FF0000000000000>(data, count);
    case at::kHalf: return all_finite_words<uint16_t, 0x7C00>(data, count);
    case at::kBFloat16: return all_finite_words<uint16_t, 0x7F80>(data, count);
    default: TORCH_INTERNAL_ASSERT(false, "no floating-point values: ", tensor.scalar_type());
  }
}

}  // namespace sgdph::kernels
