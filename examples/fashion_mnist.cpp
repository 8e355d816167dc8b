// Trains a small BatchNorm CNN on Fashion-MNIST with SGD with momentum and with SGD-PH, and prints both accuracies.
//   fashion_mnist [--epochs n] [--seed n] [--data-path folder]

#include <sgdph/sgdph.h>

#include <ATen/Parallel.h>
#include <torch/torch.h>
#include <zlib.h>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace nn = torch::nn;

// The paper's ImageNet setting: the same for both optimizers, so that only the blocks' step differs.
const double kLr = 0.1;
const double kWeightDecay = 1e-4;

struct Settings {
  std::string data_path = "/usr/share/datasets/fashion-mnist";
  int64_t epochs = 2;
  int64_t seed = 1;
};

/// Bad input: reported in one line, exit code 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int64_t whole_number(const std::string& option, const std::string& text) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 1) {
    throw UserError(option + " takes a whole number of at least 1, got '" + text + "'");
  }
  return value;
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw UserError(option + " needs a value");
      return argv[++i];
    };
    if (option == "--epochs") {
      settings.epochs = whole_number(option, value());
    } else if (option == "--seed") {
      settings.seed = whole_number(option, value());
    } else if (option == "--data-path") {
      settings.data_path = value();
    } else if (option == "--help" || option == "-h") {
      std::puts("fashion_mnist [--epochs n] [--seed n] [--data-path folder]");
      std::exit(0);
    } else {
      throw UserError("unknown option '" + option + "'; there are --epochs, --seed and --data-path");
    }
  }
  return settings;
}

/// The bytes of an idx file: a big-endian header of `dimensions` sizes, then the data.
at::Tensor read_idx(const std::string& path, uint32_t magic, size_t dimensions) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) {
    throw UserError("cannot open " + path + "; install Debian's dataset-fashion-mnist or give --data-path");
  }
  const auto read = [&](void* to, size_t bytes) {
    if (gzread(file.get(), to, static_cast<unsigned>(bytes)) != static_cast<int>(bytes)) {
      throw UserError(path + " is truncated or damaged");
    }
  };
  const auto number = [&] {
    unsigned char b[4];
    read(b, 4);
    return static_cast<uint32_t>(b[0]) << 24 | static_cast<uint32_t>(b[1]) << 16 | static_cast<uint32_t>(b[2]) << 8 |
           b[3];
  };
  if (number() != magic) throw UserError(path + " is not an idx file of the expected kind");
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    sizes.push_back(number());
    count *= sizes.back();
    if (count < 1 || count > 100'000'000) throw UserError(path + " has an impossible size in its header");
  }
  auto data = torch::empty(sizes, torch::kByte);
  read(data.data_ptr(), static_cast<size_t>(data.numel()));
  return data;
}

struct Data {
  at::Tensor images;  // float, normalised
  at::Tensor labels;
};

Data read_data(const std::string& folder, const std::string& part) {
  const auto images = read_idx(folder + "/" + part + "-images-idx3-ubyte.gz", 0x803, 3);
  const auto labels = read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz", 0x801, 1);
  if (images.size(0) != labels.size(0))
    throw UserError(folder + ": " + part + " has unequal numbers of images and labels");
  return {images.unsqueeze(1).to(torch::kFloat).div_(255).sub_(0.2860).div_(0.3530), labels.to(torch::kLong)};
}

nn::Sequential make_model() {
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  };
  return nn::Sequential(
      conv(1, 16), nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2),   //
      conv(16, 32), nn::BatchNorm2d(32), nn::ReLU(), nn::MaxPool2d(2),  //
      conv(32, 64), nn::BatchNorm2d(64), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(64, 10));
}

double accuracy(nn::Sequential& model, const Data& data) {
  torch::NoGradGuard no_grad;
  model->eval();
  int64_t right = 0;
  for (int64_t i = 0; i < data.labels.size(0); i += 1000) {
    right += model->forward(data.images.slice(0, i, i + 1000))
                 .argmax(1)
                 .eq(data.labels.slice(0, i, i + 1000))
                 .sum()
                 .item<int64_t>();
  }
  model->train();
  return 100.0 * static_cast<double>(right) / static_cast<double>(data.labels.size(0));
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A bar that redraws itself on a terminal; a line ten times a run otherwise.
class Progress {
 public:
  Progress(std::string name, int64_t total) : name_(std::move(name)), total_(total) {}

  void show(int64_t done, double loss) {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (!terminal && done * 10 / total_ == (done - 1) * 10 / total_) return;
    const double elapsed = seconds() - start_;
    const double left = elapsed / static_cast<double>(done) * static_cast<double>(total_ - done);
    const auto filled = static_cast<size_t>(30 * done / total_);
    const auto bar = std::string(filled, '#') + std::string(30 - filled, '.');
    std::fprintf(
        stderr, "%s%-7s [%s] %3d %%  loss %.3f  %3.0f s left%s", terminal ? "\r" : "", name_.c_str(), bar.c_str(),
        static_cast<int>(100 * done / total_), loss, left, terminal && done < total_ ? "" : "\n");
  }
  double elapsed() const { return seconds() - start_; }

 private:
  std::string name_;
  int64_t total_;
  double start_ = seconds();
};

struct Result {
  std::string name;
  double accuracy = 0;
  double seconds = 0;
};

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(nn::Sequential&)>;

Result train(
    const std::string& name, const MakeOptimizer& make, const Settings& settings, const Data& data, const Data& test) {
  constexpr int64_t kBatch = 128;
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  auto model = make_model();
  const auto optimizer = make(model);
  auto* measuring = dynamic_cast<sgdph::CurvatureOptimizer*>(optimizer.get());
  const auto per_epoch = data.labels.size(0) / kBatch;
  const auto total = settings.epochs * per_epoch;
  sgdph::CosineLR schedule(*optimizer, total);
  Progress progress(name, total);
  at::Tensor order;
  for (int64_t step = 0; step < total; ++step) {
    if (step % per_epoch == 0) order = torch::randperm(data.labels.size(0), torch::kLong);
    const auto batch = order.narrow(0, step % per_epoch * kBatch, kBatch);
    optimizer->zero_grad();
    const auto loss = nn::functional::cross_entropy(
        model->forward(data.images.index_select(0, batch)), data.labels.index_select(0, batch));
    if (measuring != nullptr) {
      measuring->backward(loss);
    } else {
      loss.backward();
    }
    optimizer->step();
    schedule.step();
    progress.show(step + 1, loss.item<double>());
  }
  const double elapsed = progress.elapsed();
  return {name, accuracy(model, test), elapsed};
}

int run(const Settings& settings) {
  // ATen starts with half the cores.
  at::set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  const auto data = read_data(settings.data_path, "train");
  const auto test = read_data(settings.data_path, "t10k");
  std::printf(
      "Fashion-MNIST, a BatchNorm CNN with 3 convolutions, %lld epoch(s), batch 128, cosine schedule from lr 0.1\n",
      static_cast<long long>(settings.epochs));
  std::fflush(stdout);

  std::vector<Result> results;
  results.push_back(train(
      "SGDM",
      [](nn::Sequential& model) {
        return std::make_unique<torch::optim::SGD>(
            model->parameters(), torch::optim::SGDOptions(kLr).momentum(0.9).weight_decay(kWeightDecay));
      },
      settings, data, test));
  results.push_back(train(
      "SGD-PH",
      [](nn::Sequential& model) {
        return std::make_unique<sgdph::SGDPH>(*model, sgdph::SGDPHOptions(kLr).weight_decay(kWeightDecay));
      },
      settings, data, test));

  std::printf("\n%-9s  test accuracy  training time\n", "optimizer");
  for (const auto& result : results) {
    std::printf("%-9s  %11.2f %%  %11.1f s\n", result.name.c_str(), result.accuracy, result.seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const UserError& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return 2;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what_without_backtrace());
    return 1;
  }
}
