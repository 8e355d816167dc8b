// Archives that earlier versions wrote are read, and training goes on as it would have.

#include "support/archive_samples.h"
#include "support/paths.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sgdph::test::samples_test {
namespace {

namespace fs = std::filesystem;

class ArchiveOf01 : public testing::TestWithParam<ArchiveSample> {};

TEST_P(ArchiveOf01, IsContinuedAsThenByTheSameSteps) {
  // Room for sums in another order on another processor; a lost or misread field shows in the third digit.
  EXPECT_LT(continue_archive_sample(GetParam(), fs::path(kSamplesDir) / "0.1" / "archives"), 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Samples, ArchiveOf01, testing::ValuesIn(archive_samples()), [](const auto& info) {
  auto name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ArchiveSamples, OfTodayAreWrittenAndRead) {
  const TempFolder folder;
  write_archive_samples(folder.path());
  for (const auto& sample : archive_samples())
    EXPECT_EQ(continue_archive_sample(sample, folder.path()), 0) << sample.name;
}

TEST(ArchiveSamples, AnArchiveThatIsReadAsAnotherShows) {
  const TempFolder folder;
  write_archive_samples(folder.path());
  fs::copy_file(folder / "sgd-ph-rademacher.pt", folder / "sgd-ph.pt", fs::copy_options::overwrite_existing);
  EXPECT_GT(continue_archive_sample(archive_samples().front(), folder.path()), 1e-4);
}

}  // namespace
}  // namespace sgdph::test::samples_test
