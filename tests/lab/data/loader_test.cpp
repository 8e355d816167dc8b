#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "data/datasets.h"
#include "data/loader.h"
#include "support/checks.h"
#include "support/sample_data.h"

namespace sgdph::test::loader_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::data;

/// Image i is label i and the draws it was augmented with; reading takes an uneven time, so that workers overtake
/// each other.
class Counted : public Dataset {
 public:
  explicit Counted(int64_t size, std::set<int64_t> damaged = {}) : size_(size), damaged_(std::move(damaged)) {}
  int64_t size() const override { return size_; }
  int64_t classes() const override { return size_; }
  ImageShape shape() const override { return {1, 2, 2}; }
  int64_t read(int64_t index, Random* random, float* out) const override {
    ++reads;
    if (index % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (damaged_.count(index) > 0) fail("image {} is damaged", index);
    for (int i = 0; i < 4; ++i) out[i] = random != nullptr ? static_cast<float>(random->uniform()) : -1;
    return index;
  }

  mutable std::atomic<int64_t> reads{0};

 private:
  int64_t size_;
  std::set<int64_t> damaged_;
};

LoaderOptions options(int64_t batch_size, int64_t workers) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.workers = workers;
  options.prefetch = 2;
  options.seed = 9;
  return options;
}

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch, int64_t first = 0) {
  std::vector<Batch> batches;
  loader.start(epoch, first);
  while (auto batch = loader.next()) batches.push_back(*batch);
  return batches;
}

std::vector<Batch> epoch_of(const Dataset& data, const LoaderOptions& options, int64_t epoch, int64_t first = 0) {
  Loader loader(data, options);
  return epoch_of(loader, epoch, first);
}

void expect_equal(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].labels.equal(b[i].labels)) << "batch " << i;
    EXPECT_TRUE(a[i].images.equal(b[i].images)) << "batch " << i;
  }
}

std::vector<int64_t> labels_of(const std::vector<Batch>& batches) {
  std::vector<int64_t> labels;
  for (const auto& batch : batches) {
    for (int64_t i = 0; i < batch.labels.size(0); ++i) labels.push_back(batch.labels[i].item<int64_t>());
  }
  return labels;
}

TEST(Loader, GivesTheSameBatchesForAnyNumberOfWorkers) {
  const Counted data(103);
  for (const int64_t epoch : {0, 5}) {
    const auto alone = epoch_of(data, options(10, 0), epoch);
    EXPECT_EQ(alone.size(), 11U);
    EXPECT_EQ(alone.back().labels.size(0), 3);
    expect_equal(alone, epoch_of(data, options(10, 1), epoch));
    expect_equal(alone, epoch_of(data, options(10, 4), epoch));
  }
}

TEST(Loader, GivesTheSameBatchesOfCifarForAnyNumberOfWorkers) {
  const TempFolder folder;
  write_cifar10(folder.path(), 300, 10, 1);
  const auto data = open_dataset("cifar10", folder.path()).train;
  const auto alone = epoch_of(*data, options(32, 0), 1);
  expect_equal(alone, epoch_of(*data, options(32, 1), 1));
  expect_equal(alone, epoch_of(*data, options(32, 4), 1));
}

TEST(Loader, ShowsEveryImageOnceInAnOrderOfTheEpochAndSeed) {
  const Counted data(103);
  const auto first = labels_of(epoch_of(data, options(10, 2), 0));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 103U);
  EXPECT_EQ(first.size(), 103U);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_NE(first, labels_of(epoch_of(data, options(10, 2), 1)));
  auto other = options(10, 2);
  other.seed = 10;
  EXPECT_NE(first, labels_of(epoch_of(data, other, 0)));
}

TEST(Loader, ShufflesEvenly) {
  // Where image 0 of 4 lands, over many epochs; 1000 times each is expected, with a deviation of 27.
  const Counted data(4);
  Loader loader(data, options(4, 0));
  std::map<size_t, int> places;
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const auto labels = labels_of(epoch_of(loader, epoch));
    ++places[static_cast<size_t>(std::find(labels.begin(), labels.end(), 0) - labels.begin())];
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(places[i], 1000, 140) << i;
}

TEST(Loader, AugmentsAnImageDifferentlyInEachEpoch) {
  const Counted data(8);
  const auto value = [&](int64_t epoch) {
    const auto batch = epoch_of(data, options(8, 0), epoch).at(0);
    return batch.images[(batch.labels == 3).nonzero().item<int64_t>()].clone();
  };
  EXPECT_FALSE(value(0).equal(value(1)));
  EXPECT_TRUE(value(1).equal(value(1)));
}

TEST(Loader, StartsInTheMiddleOfAnEpoch) {
  const Counted data(103);
  auto all = epoch_of(data, options(10, 0), 3);
  all.erase(all.begin(), all.begin() + 4);
  for (const int64_t workers : {0, 1, 4}) expect_equal(all, epoch_of(data, options(10, workers), 3, 4));
  EXPECT_TRUE(epoch_of(data, options(10, 2), 3, 11).empty());
}

TEST(Loader, GivesAStepTheSameImagesForAnyNumberOfRanks) {
  constexpr int64_t kBatchesOfStep = 6;
  const Counted data(203);
  const auto calm = epoch_of(data, options(4, 2), 3);
  int64_t step = 0;
  for (const int64_t ranks : {2, 1, 3, 6}) {  // a run that goes on with other ranks after each step
    std::map<int64_t, Batch> shared;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      auto mine = options(4, 1);
      mine.rank = rank;
      mine.ranks = ranks;
      Loader loader(data, mine);
      loader.start(3, kBatchesOfStep * step);
      for (int64_t i = 0; i < kBatchesOfStep / ranks; ++i) {
        const auto batch = loader.next();
        ASSERT_TRUE(batch);
        shared[batch->number] = *batch;
      }
    }
    ASSERT_EQ(shared.size(), static_cast<size_t>(kBatchesOfStep));
    for (const auto& [number, batch] : shared) {
      EXPECT_EQ(number / kBatchesOfStep, step);
      const auto& same = calm.at(static_cast<size_t>(number));
      EXPECT_EQ(same.number, number);
      EXPECT_TRUE(torch::equal(batch.labels, same.labels) && torch::equal(batch.images, same.images));
    }
    ++step;
  }
}

TEST(Loader, TestsInOrderWithoutAugmentation) {
  const Counted data(25);
  auto in_order = options(10, 2);
  in_order.shuffle = false;
  const auto batches = epoch_of(data, in_order, 0);
  const auto labels = labels_of(batches);
  EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end()));
  EXPECT_EQ(labels.size(), 25U);
  EXPECT_TRUE((batches[1].images == -1).all().item<bool>());
}

TEST(Loader, LimitsToAFixedChoice) {
  const Counted data(103);
  auto limited = options(8, 1);
  limited.limit = 20;
  Loader loader(data, limited);
  EXPECT_EQ(loader.images(), 20);
  EXPECT_EQ(loader.batches(), 3);
  auto one = labels_of(epoch_of(loader, 0));
  auto two = labels_of(epoch_of(loader, 1));
  EXPECT_NE(one, two);
  std::sort(one.begin(), one.end());
  std::sort(two.begin(), two.end());
  EXPECT_EQ(one, two);
  EXPECT_GT(one.back(), 20);  // not just the first
  limited.shuffle = false;
  const auto first = labels_of(epoch_of(data, limited, 0));
  EXPECT_EQ(first.back(), 19);
  EXPECT_EQ(first.size(), 20U);
}

TEST(Loader, StopsCleanlyInTheMiddleOfAnEpoch) {
  const Counted data(500);
  for (const int64_t workers : {1, 4}) {
    Loader loader(data, options(10, workers));
    loader.start(0);
    loader.next();
    loader.start(1);  // what was under way is dropped
    std::vector<Batch> batches{*loader.next()};
    expect_equal(batches, {epoch_of(data, options(10, 0), 1)[0]});
    Loader idle(data, options(10, workers));
    idle.start(0);  // destroyed with nothing taken
  }
}

TEST(Loader, PreparesNoMoreThanItMay) {
  const Counted data(500);
  Loader loader(data, options(10, 2));
  loader.start(0);
  for (int64_t taken = 0; taken < 3; ++taken) {
    // Two batches ahead for each of two workers, and a while to make more if nothing stopped them.
    for (int i = 0; i < 1000 && data.reads < (taken + 4) * 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(data.reads, (taken + 4) * 10);
    loader.next();
  }
}

TEST(Loader, KeepsBatchesThatTheCallerKeeps) {
  const Counted data(100);
  Loader loader(data, options(10, 2));
  loader.start(0);
  const auto kept = *loader.next();
  const auto slice = loader.next()->images[0];
  const auto kept_values = kept.images.clone();
  const auto slice_values = slice.clone();
  while (loader.next()) {
  }
  EXPECT_TRUE(kept.images.equal(kept_values));
  EXPECT_TRUE(slice.equal(slice_values));
}

TEST(Loader, ThrowsWhatWentWrongInTheOrderOfTheBatches) {
  for (const int64_t workers : {0, 1, 4}) {
    auto in_order = options(10, workers);
    in_order.shuffle = false;
    const Counted data(60, {35, 52});
    Loader loader(data, in_order);
    loader.start(0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
    EXPECT_EQ(error_of([&] { loader.next(); }), "image 35 is damaged");
    EXPECT_EQ(loader.next()->labels[0].item<int64_t>(), 40);
    EXPECT_EQ(error_of([&] { loader.next(); }), "image 52 is damaged");
    EXPECT_FALSE(loader.next());
  }
}

TEST(Loader, LeavesDamagedImagesOutAndCountsThem) {
  std::set<int64_t> damaged{5, 6};
  for (int64_t i = 20; i < 30; ++i) damaged.insert(i);
  const Counted data(45, damaged);
  for (const int64_t workers : {0, 1, 4}) {
    auto skipping = options(10, workers);
    skipping.shuffle = false;
    skipping.skip_damaged = true;
    Loader loader(data, skipping);
    const auto batches = epoch_of(loader, 0);
    ASSERT_EQ(batches.size(), 4U);  // the third is passed over
    EXPECT_EQ(batches[0].images.sizes(), (at::IntArrayRef{8, 1, 2, 2}));
    EXPECT_EQ(labels_of({batches[0]}), (std::vector<int64_t>{0, 1, 2, 3, 4, 7, 8, 9}));
    EXPECT_EQ(labels_of({batches[2]}).front(), 30);
    EXPECT_EQ(loader.damaged(), 12);
  }
}

TEST(Loader, NamesADamagedFileOrSkipsIt) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 3);
  const auto file = folder / "train/class_001/image_1.JPEG";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const auto data = open_dataset("imagenet", folder.path()).train;
  auto skipping = options(2, 2);
  const auto text = error_of([&] { epoch_of(*data, skipping, 0); });
  EXPECT_EQ(text.rfind(file.string() + ": damaged JPEG (", 0), 0U) << text;
  skipping.skip_damaged = true;
  Loader loader(*data, skipping);
  EXPECT_EQ(labels_of(epoch_of(loader, 0)).size(), 5U);
  EXPECT_EQ(loader.damaged(), 1);
}

TEST(Loader, LeavesLibTorchsGeneratorAlone) {
  const Counted data(100);
  torch::manual_seed(1);
  const auto undisturbed = torch::rand({3});
  torch::manual_seed(1);
  epoch_of(data, options(10, 0), 0);
  epoch_of(data, options(10, 4), 0);
  EXPECT_TRUE(undisturbed.equal(torch::rand({3})));
}

TEST(Loader, RefusesABatchLargerThanTheData) {
  const Counted data(30);
  const auto error = [&](const LoaderOptions& options) { return error_of([&] { Loader(data, options); }); };
  EXPECT_EQ(error(options(31, 1)), "a batch of 31 is larger than the data, 30 images; choose a smaller one");
  auto limited = options(20, 1);
  limited.limit = 10;
  EXPECT_EQ(error(limited), "a batch of 20 is larger than the data, 10 images; choose a smaller one");
  EXPECT_EQ(error(options(0, 1)), "the batch size is 0; it must be at least 1");
  EXPECT_EQ(error(options(1, -1)), "the number of workers is -1; it must not be negative");
}

}  // namespace
}  // namespace sgdph::test::loader_test
