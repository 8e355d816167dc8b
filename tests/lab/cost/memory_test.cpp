#include "cost/memory.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <cstring>

namespace sgdph::lab::cost::memory_test {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

TEST(HeldBytes, SeesAnAllocationAndItsRelease) {
  HeldBytesGuard guard;
  auto& counter = guard.counter();
  const auto before = counter.now();
  auto tensor = at::empty({16 * kMegabyte}, at::kByte);
  EXPECT_EQ(counter.now() - before, 16 * kMegabyte);
  tensor = at::Tensor();
  EXPECT_EQ(counter.now(), before);
  EXPECT_EQ(counter.peak() - before, 16 * kMegabyte);
  counter.reset_peak();
  EXPECT_EQ(counter.peak(), before);
}

TEST(HeldBytes, SeesNothingOutsideItsGuard) {
  std::shared_ptr<HeldBytes> counter;
  HeldBytesGuard outer;
  const auto before = outer.counter().now();
  {
    HeldBytesGuard inner;
    const auto tensor = at::empty({kMegabyte}, at::kByte);
    EXPECT_EQ(inner.counter().now(), kMegabyte);
  }
  EXPECT_EQ(outer.counter().now(), before);
}

TEST(PeakResident, FollowsAnAllocationAfterAReset) {
  if (!reset_peak_resident()) GTEST_SKIP() << "the system does not allow it";
  // From the system itself: a sanitizer's allocator would keep what is freed.
  void* bytes = ::mmap(nullptr, 64 * kMegabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(bytes, MAP_FAILED);
  std::memset(bytes, 1, 64 * kMegabyte);
  ASSERT_EQ(::munmap(bytes, 64 * kMegabyte), 0);
  const auto peak = peak_resident_bytes();
  EXPECT_GT(peak, 64 * kMegabyte);
  ASSERT_TRUE(reset_peak_resident());
  EXPECT_LT(peak_resident_bytes(), peak - 32 * kMegabyte);
}

TEST(MeasureMemory, CountsParametersGradientsAndStateAndGoesByPosition) {
  Workload workload;
  workload.model = "resnet8";
  workload.batch_size = 4;
  const auto parameters = models::count_parameters(*models::make_model(workload.model_options(models::Kernels::Fast)));
  const auto sgdm = measure_memory(engine("sgdm"), workload, false);
  ASSERT_EQ(sgdm.steps.size(), 1U);
  // Weights, gradients and momentum of four bytes each, and activations on top.
  EXPECT_GT(sgdm.steps[0].held, 3 * 4 * parameters);
  const auto some = measure_memory(engine("sgd-ph"), workload, false);
  ASSERT_EQ(some.steps.size(), 3U);
  EXPECT_EQ(some.steps[0].position, 0);
  const auto every = measure_memory(engine("sgd-ph"), workload, true);
  EXPECT_EQ(static_cast<int64_t>(every.steps.size()), some.steps[2].position + 1);
  EXPECT_GT(every.steps[0].held, sgdm.steps[0].held);
}

}  // namespace
}  // namespace sgdph::lab::cost::memory_test
