// Bad input to the commands that measure, compare and report: one clear line, exit code 2, nothing written.

#include "support/command.h"
#include "support/sample_data.h"

namespace sgdph::test::refusals_test {
namespace {

namespace fs = std::filesystem;

class Compare : public CommandTest {
 protected:
  Words compare(const Words& more) const {
    return Words{"compare", "--data-path", data(), "--width",      "0.5",           "-b", "32", "--epochs",
                 "2",       "--threads",   "1",    "--output-dir", in_folder("cmp")} +
           more;
  }
};

TEST_F(Compare, AMistakeInTheInputStopsItAtOnce) {
  refuse(compare({"-b", "100000"}), {"100000"});
  refuse(compare({"--refresh", "joint", "--opts", "sgd-ph"}), {"Joint"});
  refuse(compare({"--refresh", "spread", "--opts", "sgd-ph"}), {"Spread", "Rademacher or Hadamard"});
}

/// The run that a comparison would make, made here: the comparison finds it in its folder.
TEST_F(Compare, OtherSettingsInItsFolderAreRefused) {
  succeed(small("sgdm", 2, in_folder("cmp/sgdm-seed1")));
  refuse(compare({"--opts", "sgdm", "--lr", "0.5"}), {"holds another comparison", "lr"});
  refuse(compare({"--opts", "sgdm", "--threads", "2"}), {"threads is 1"});
}

TEST_F(Compare, WhatAFileSaysReachesTheTerminalAsOneLineOfText) {
  write_bytes(folder() / "evil.toml", "[run]\nlr_scheduler = \"\\u001b]0;title\\u0007\\nsgdph: all is well\"\n");
  refuse(compare({"--config", in_folder("evil.toml"), "--opts", "sgdm"}), {"unknown", "\\x1b]0;title\\x07\\x0asgdph"});
}

class Cost : public CommandTest {
 protected:
  void refuse_cost(const Words& words, const Words& says) const {
    const Words cost{"cost", "--model", "resnet8", "--batch-size", "4,8", "--rounds", "2", "--threads", "1"};
    refuse(cost + words + Words{"--output-dir", in_folder("out")}, says);
  }
};

TEST_F(Cost, MistakesAreNamedAndNothingIsWritten) {
  refuse_cost({"--engines", "sgd-phh"}, {"sgd-phh", "did you mean 'sgd-ph'?"});
  refuse_cost({"--engines", "sgdm,sgdm"}, {"sgdm is named twice"});
  refuse_cost({"--model", "resnet9"}, {"resnet9", "resnet8"});
  refuse_cost({"--form", "imagenet"}, {"resnet8", "CIFAR form only"});
  refuse_cost({"--rounds", "0"}, {"--rounds"});
  refuse_cost({"--task", "{}"}, {"--task"});
  for (const auto* sizes : {"1", "0", "x", "4,", "4,4", ""}) refuse_cost({"--batch-size", sizes}, {"--batch-size"});
}

class Scale : public CommandTest {};

TEST_F(Scale, MistakesAreNamed) {
  refuse({"scale", "--model", "resnet9", "--step", "1"}, {"resnet9", "resnet8"});
  refuse({"scale", "--model", "resnet8", "--form", "imagenet", "--step", "1"}, {"resnet8", "CIFAR form only"});
  refuse({"scale", "--product", "1"}, {"--product", "--step"});
  for (const auto* ranks : {"0", "x", "1,", "2,2", "", "100000"}) {
    refuse({"scale", "--step", "1", "--ranks", ranks}, {"--ranks"});
  }
  for (const auto* option : {"--bandwidth", "--step", "--batch-size", "--bucket", "--epoch"}) {
    refuse({"scale", option, "0"}, {option});
  }
  refuse({"scale", "--hop", "-1"}, {"--hop"});
  refuse({"scale", "--bandwith", "1"}, {"--bandwith"});
}

class Inspect : public CommandTest {
 protected:
  Words inspect(const Words& more) const {
    return Words{"inspect", "--data-path", data(), "--width", "0.5", "-b", "16", "--threads", "1"} + more + out();
  }
  Words out() const { return {"--output-dir", in_folder("out")}; }
};

TEST_F(Inspect, MistakesAreNamedAndNothingIsWritten) {
  refuse(inspect({"--blocks", "bn1.weigth"}), {"bn1.weigth", "did you mean 'bn1.weight'?"});
  refuse(inspect({"--blocks", "0"}), {"--blocks"});
  refuse(inspect({"--blocks", "bn1.bias", "--picture", "bn1.weight"}), {"block to draw"});
  refuse(inspect({"--max-channels", "-1"}), {"--max-channels"});
  refuse(inspect({"--refreshes", "0"}), {"--refreshes"});
  refuse(inspect({"--shards", "-1"}), {"--shards"});
  refuse(inspect({"--probe-cycle", "6"}), {"probe_cycle", "6"});
  refuse(inspect({"--model", "resnet9"}), {"resnet9", "resnet8"});
  refuse(inspect({"-b", "1000"}), {"1000"});
  refuse(inspect({"--norm", "instance", "-b", "1"}), {"--batch-size"});
  refuse(inspect({"--lr", "1"}), {"--lr"});
}

TEST_F(Inspect, WhatIsNoRunIsNamedAndNothingIsWritten) {
  refuse(Words{"inspect", in_folder("nowhere")} + out(), {"nowhere", "does not exist"});
  fs::create_directory(folder() / "no-run");
  refuse(Words{"inspect", in_folder("no-run")} + out(), {"no-run holds no checkpoint; give a run's folder"});
  write_bytes(folder() / "empty.pt", "");
  auto words = inspect({});
  words.insert(words.begin() + 1, in_folder("empty.pt"));
  refuse(words, {"empty.pt"});
  write_bytes(folder() / "file", "");
  words = inspect({});
  words.back() = in_folder("file");
  refuse(words, {"file"});
}

constexpr const char* kExperiment = R"(
title = "Two optimizers, two widths"
ranked = "opt"
[[axis]]
name = "width"
values = [0.25, 0.5]
[[axis]]
name = "opt"
values = ["sgdm", "sgd-ph"]
[full.run]
dataset = "fashion-mnist"
epochs = 10
[desk]
runs = 1
why = "A test must be quick."
[desk.run]
model = "resnet8"
epochs = 2
batchsize = 32
)";

class Reproduce : public CommandTest {
 protected:
  void write_experiment(const std::string& batch_size) const {
    std::string text = kExperiment;
    write_bytes(folder() / "mine.toml", text.replace(text.find("batchsize"), 9, batch_size));
  }
};

TEST_F(Reproduce, MistakesInAFileAreNamedWithTheirLine) {
  write_experiment("batchsize");
  refuse(
      {"reproduce", "mine.toml", "--data-path", data(), "--threads", "1", "--output-dir", "out"},
      {"mine.toml:19:", "batchsize", "did you mean 'batch_size'?"});
  refuse({"reproduce", "none.toml"}, {"none.toml"});
}

TEST_F(Reproduce, MissingDataIsOneLine) {
  write_experiment("batch_size");
  refuse({"reproduce", "mine.toml", "--output-dir", "out", "--data-path", in_folder("nowhere")}, {"nowhere"});
}

TEST_F(Reproduce, UnknownValuesOfAnAxisAreRefusedWithTheNearest) {
  write_experiment("batch_size");
  refuse({"reproduce", "mine.toml", "--output-dir", "out", "--only", "opt=sgd"}, {"opt of mine", "did you mean"});
}

TEST_F(Reproduce, UnknownNamesAreRefusedWithTheNearest) {
  refuse({"reproduce", "cifr"}, {"did you mean 'cifar'?"});
  refuse({"reproduce"}, {"name"});
  refuse({"reproduce", "alpha", "--data-path", "imagenet=x"}, {"data set of alpha", "'imagenet'", "cifar100"});
  refuse({"reproduce", "cifar", "--data-path", "x"}, {"cifar100, cifar10", "NAME="});
  refuse({"reproduce", "cifar", "--seeds", "0"}, {"--seeds"});
}

class Report : public CommandTest {};

TEST_F(Report, MistakesAreNamedAndNothingIsWritten) {
  const auto runs = in_folder("runs");
  succeed(small("sgdm", 1, runs + "/sgdm-seed1"));
  write_bytes(folder() / "file", "");
  fs::create_directory(folder() / "empty");
  refuse({"report", in_folder("nowhere")}, {"there is no folder", "nowhere"});
  refuse({"report", in_folder("file")}, {"not a folder"});
  refuse({"report", in_folder("empty")}, {"no run, cost.json or inspect.json", "empty"});
  refuse({"report"}, {"DIR"});
  refuse({"report", runs, "--format", "pdf"}, {"--format"});
  refuse({"report", runs, "--output", in_folder("empty")}, {"is a folder"});
  refuse({"report", runs, "--output", in_folder("file/x")}, {"file"});
}

}  // namespace
}  // namespace sgdph::test::refusals_test
