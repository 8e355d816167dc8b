#pragma once

#include "kernels/batch_norm_kernels.h"
#include "kernels/vector_mask.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <vector>

// The two walks every batch norm kernel takes: sums per channel, then one value at a time with coefficients per
// channel. Which thread adds what does not depend on how many there are, so the bits do not either.

namespace sgdph::kernels {
namespace {

/// Values a thread should have at least.
constexpr int64_t kGrain = 32768;

/// A job has
///   kSums, kCoefficients
///   double centre(c)                                       subtracted from x before it is summed
///   void add(position, byte, count, centre, sums)          takes eight values, or `count`, into the sums
///   void finish(c, sums, coefficients)                     turns a channel's sums into its coefficients
///   void apply(position, byte, count, coefficients)        writes eight values, or `count`
/// `sums` is false if nothing need be summed, `applies` if nothing need be written.
template <class T, class Job>
void over_planes(const Job& job, const Layout& layout, bool sums, bool applies) {
  const auto [outer, channels, inner] = layout;
  const auto bytes = (inner + 7) / 8;
  const auto whole = inner - inner % kLanes;
  const auto rest = static_cast<int>(inner - whole);
  at::parallel_for(
      0, channels, std::max<int64_t>(1, kGrain / (outer * inner)),
      [&, outer = outer, channels = channels, inner = inner](int64_t c, int64_t end) {
        for (; c < end; ++c) {
          std::array<double, Job::kSums> total{};
          if (sums) {
            std::array<Double8, Job::kSums> sum8{};
            const auto centre = broadcast<double>(job.centre(c));
            for (int64_t o = 0; o < outer; ++o) {
              const auto at = (o * channels + c) * inner;
              const auto byte = (o * channels + c) * bytes;
              for (int64_t i = 0; i < whole; i += kLanes) job.add(at + i, byte + i / kLanes, kLanes, centre, sum8);
              if (rest != 0) job.add(at + whole, byte + whole / kLanes, rest, centre, sum8);
            }
            for (int k = 0; k < Job::kSums; ++k) total[k] = sum(sum8[k]);
          }
          std::array<double, Job::kCoefficients> scalars{};
          job.finish(c, total, scalars);
          if (!applies) continue;
          std::array<Vector<T>, Job::kCoefficients> coefficients;
          for (int k = 0; k < Job::kCoefficients; ++k) coefficients[k] = broadcast<T>(scalars[k]);
          for (int64_t o = 0; o < outer; ++o) {
            const auto at = (o * channels + c) * inner;
            const auto byte = (o * channels + c) * bytes;
            for (int64_t i = 0; i < whole; i += kLanes) job.apply(at + i, byte + i / kLanes, kLanes, coefficients);
            if (rest != 0) job.apply(at + whole, byte + whole / kLanes, rest, coefficients);
          }
        }
      });
}

/// The same for channels last, where a channel's values lie one to a row.
template <class T, class Job>
void over_rows(const Job& job, const Layout& layout, bool sums, bool applies) {
  const auto rows = layout.outer;
  const auto channels = layout.channels;
  const auto bytes = (channels + 7) / 8;
  // Fixed by the shape alone: the sums of a chunk are one thread's.
  const auto chunk = std::max<int64_t>(1, kGrain / 2 / channels);
  const auto chunks = (rows + chunk - 1) / chunk;

  std::vector<double> centres(channels);
  for (int64_t c = 0; c < channels; ++c) centres[c] = job.centre(c);
  std::vector<double> partial(sums ? chunks * Job::kSums * channels : 0);
  if (sums) {
    at::parallel_for(0, chunks, 1, [&](int64_t k, int64_t end) {
      for (; k < end; ++k) {
        const auto last = std::min(rows, (k + 1) * chunk);
        for (int64_t c = 0; c < channels; c += kLanes) {
          const auto count = static_cast<int>(std::min<int64_t>(kLanes, channels - c));
          const auto centre = load(&centres[c], count);
          std::array<Double8, Job::kSums> sum8{};
          if (count == kLanes) {
            for (auto row = k * chunk; row < last; ++row) {
              job.add(row * channels + c, row * bytes + c / kLanes, kLanes, centre, sum8);
            }
          } else {
            for (auto row = k * chunk; row < last; ++row) {
              job.add(row * channels + c, row * bytes + c / kLanes, count, centre, sum8);
            }
          }
          for (int s = 0; s < Job::kSums; ++s) store(&partial[(k * Job::kSums + s) * channels + c], sum8[s], count);
        }
      }
    });
  }
  std::vector<T> values(Job::kCoefficients * channels);
  at::parallel_for(0, channels, 64, [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      std::array<double, Job::kSums> total{};
      for (int64_t k = 0; sums && k < chunks; ++k) {
        for (int s = 0; s < Job::kSums; ++s) total[s] += partial[(k * Job::kSums + s) * channels + c];
      }
      std::array<double, Job::kCoefficients> scalars{};
      job.finish(c, total, scalars);
      for (int k = 0; k < Job::kCoefficients; ++k) values[k * channels + c] = static_cast<T>(scalars[k]);
    }
  });
  if (!applies) return;
  at::parallel_for(0, chunks, 1, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      const auto last = std::min(rows, (k + 1) * chunk);
      for (auto row = k * chunk; row < last; ++row) {
        for (int64_t c = 0; c < channels; c += kLanes) {
          const auto count = static_cast<int>(std::min<int64_t>(kLanes, channels - c));
          std::array<Vector<T>, Job::kCoefficients> coefficients;
          for (int s = 0; s < Job::kCoefficients; ++s) coefficients[s] = load(&values[s * channels + c], count);
          if (count == kLanes) {
            job.apply(row * channels + c, row * bytes + c / kLanes, kLanes, coefficients);
          } else {
            job.apply(row * channels + c, row * bytes + c / kLanes, count, coefficients);
          }
        }
      }
    }
  });
}

template <class T, class Job>
void run_job(const Job& job, const Layout& layout, bool sums, bool applies) {
  if (layout.inner == 1) {
    over_rows<T>(job, layout, sums, applies);
  } else {
    over_planes<T>(job, layout, sums, applies);
  }
}

}  // namespace
}  // namespace sgdph::kernels
