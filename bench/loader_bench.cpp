// Images per second of each data pipeline: read one by one in a thread, and through the loader. Beside
// `items_per_second` of the wall clock, `per_worker` divides by the processor time of the process, which other programs
// do not disturb.

#include <benchmark/benchmark.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets.h"
#include "data/jpeg_images.h"
#include "data/loader.h"
#include "support/sample_data.h"
#include "support/temp_folder.h"

namespace {

namespace fs = std::filesystem;
using namespace sgdph::lab;

/// Made once, removed at the end.
struct Samples {
  Samples() {
    sgdph::test::write_cifar10(folder / "cifar10", 10000, 10, 1);
    cifar = data::open_dataset("cifar10", folder / "cifar10").train;
    // About as many bytes per picture as Mini-ImageNet's 84 x 84 files and ImageNet's have.
    mini = jpegs("mini", 84, 84, 85, 512, data::JpegImages::TestView::kWhole);
    imagenet = jpegs("imagenet", 500, 375, 95, 128, data::JpegImages::TestView::kCentre);
  }
  std::unique_ptr<data::Dataset> jpegs(
      const std::string& name, int width, int height, int quality, int count, data::JpegImages::TestView view) const {
    const auto place = folder / name;
    fs::create_directories(place);
    data::ImageFiles files;
    const auto number = files.add_folder(place);
    for (int i = 0; i < count; ++i) {
      const auto file = std::to_string(i) + ".jpg";
      sgdph::test::write_bytes(
          place / file, sgdph::test::sample_jpeg(width, height, i % 100, static_cast<uint64_t>(i), quality));
      files.add(number, file, i % 100);
    }
    return std::make_unique<data::JpegImages>(std::move(files), 100, view);
  }

  sgdph::test::TempFolder folder;
  std::unique_ptr<data::Dataset> cifar, mini, imagenet;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void report(benchmark::State& state, int64_t images, double seconds) {
  state.SetItemsProcessed(images);
  state.counters["per_worker"] = static_cast<double>(images) / seconds;
}

void read_straight(benchmark::State& state, const data::Dataset& data, bool augment) {
  std::vector<float> image(static_cast<size_t>(data.shape().values()));
  int64_t images = 0;
  const auto begin = processor_seconds();
  for (auto _ : state) {
    data::Random random(1, 0, static_cast<uint64_t>(images));
    benchmark::DoNotOptimize(data.read(images % data.size(), augment ? &random : nullptr, image.data()));
    ++images;
  }
  report(state, images, processor_seconds() - begin);
}

void load_epoch(benchmark::State& state, const data::Dataset& data, int64_t workers, int64_t batch_size) {
  data::LoaderOptions options;
  options.batch_size = batch_size;
  options.workers = workers;
  data::Loader loader(data, options);
  int64_t images = 0;
  int64_t epoch = 0;
  const auto begin = processor_seconds();
  for (auto _ : state) {
    loader.start(epoch++);
    while (const auto batch = loader.next()) images += batch->labels.size(0);
  }
  report(state, images, processor_seconds() - begin);
}

void register_pipeline(const std::string& name, const data::Dataset& data, int64_t batch_size) {
  benchmark::RegisterBenchmark(
      (name + "/read_train").c_str(), [&data](auto& state) { read_straight(state, data, true); });
  benchmark::RegisterBenchmark(
      (name + "/read_test").c_str(), [&data](auto& state) { read_straight(state, data, false); });
  for (const int64_t workers : {1, 2}) {
    benchmark::RegisterBenchmark(
        (name + "/loader_workers:" + std::to_string(workers)).c_str(),
        [&data, workers, batch_size](auto& state) { load_epoch(state, data, workers, batch_size); })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const Samples samples;
  register_pipeline("cifar_crop_flip_normalise", *samples.cifar, 128);
  register_pipeline("jpeg_84_to_224", *samples.mini, 64);
  register_pipeline("jpeg_500x375_to_224", *samples.imagenet, 32);
  benchmark::RunSpecifiedBenchmarks();
}
