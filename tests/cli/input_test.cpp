// Bad input to train and eval: one clear line, exit code 2, nothing written.

#include "support/command.h"
#include "support/sample_data.h"

namespace sgdph::test::input_test {
namespace {

namespace fs = std::filesystem;

class Options : public CommandTest {
 protected:
  void refuse_train(const Words& words, const Words& says) const { refuse(Words{"train"} + words, says); }
};

TEST_F(Options, AnUnknownOptionIsRefusedWithTheNearestName) {
  refuse({"train", "--modle", "resnet8"}, {"unknown option '--modle'", "'--model'"});
  refuse({"train", "--modle=resnet8"}, {"did you mean '--model'?"});
}

TEST_F(Options, AnUnknownCommandIsRefusedWithTheNearestName) {
  refuse({"trian"}, {"unknown command 'trian'", "'train'"});
  refuse({"data", "fetsh"}, {"did you mean 'fetch'?"});
}

TEST_F(Options, UnknownNamesAreRefusedWithTheNearestOne) {
  refuse_train({"--model", "resnet81"}, {"unknown model 'resnet81'", "'resnet18'"});
  refuse_train({"--norm", "bach"}, {"'bach'", "'batch'"});
  refuse_train({"--opt", "sgdph"}, {"unknown optimizer 'sgdph'", "'sgd-ph'"});
  refuse_train({"--dataset", "cifar1000"}, {"'cifar1000'", "'cifar100'"});
  refuse_train({"--recipe", "cifar"}, {"unknown recipe 'cifar'", "'cifar10'"});
  refuse({"compare", "--opts", "sgdm,adma"}, {"unknown optimizer 'adma'", "'adam'"});
  refuse({"compare", "--seeds", "many"}, {"--seeds", "'many'"});
}

TEST_F(Options, ValuesOfTheWrongKindOrOutOfRangeAreRefused) {
  refuse_train({"--lr", "fast"}, {"--lr", "a number", "'fast'"});
  refuse_train({"--epochs", "2.5"}, {"--epochs", "a whole number", "'2.5'"});
  refuse_train({"--epochs", "0"}, {"--epochs", "at least 1", "0"});
  refuse_train({"--label-smoothing", "2"}, {"--label-smoothing", "at most 1"});
  refuse_train({"--lr", "nan"}, {"--lr", "finite"});
  refuse_train({"--width", "0"}, {"--width", "above 0"});
  refuse_train({"--device", "tpu"}, {"--device", "'tpu'"});
  refuse_train({"--opt", "adam", "--betas", "1,0.9"}, {"--betas", "below 1"});
  refuse_train({"--opt", "adam", "--betas", "0.9"}, {"--betas", "2 numbers"});
  // Names of earlier versions lead to those of today.
  refuse_train({"--opt", "adam", "--beta1", "0.9"}, {"'--beta1'", "it is --betas now"});
  refuse_train({"--opt", "apollo", "--warmup-steps", "3"}, {"'--warmup-steps'", "it is --warmup now"});
  refuse_train({"--opt", "sgdm", "--momentum", "1"}, {"--momentum", "below 1"});
  refuse_train({"--lr", "1e39"}, {"--lr", "at most 1e+38"});
  refuse_train({"--lr-scheduler", "multistep"}, {"--lr-milestones"});
  refuse_train({"--lr-scheduler", "multistep", "--lr-milestones", "3,2"}, {"--lr-milestones", "3,2"});
  refuse_train({"--lr-milestones", "3"}, {"--lr-milestones", "multistep"});
  refuse_train({"--lr-scheduler", "cosine", "--lr-min", "5"}, {"--lr-min"});
  refuse_train({"--data-path", "\xff"}, {"--data-path", "UTF-8"});
  refuse_train({"--amp", "fp16"}, {"amp", "'fp16'", "bf16"});
  refuse_train({"--norm-weight-decay", "-1"}, {"--norm-weight-decay", "at least 0"});
  refuse_train({"--bias-weight-decay", "x"}, {"--bias-weight-decay", "a number"});
  refuse_train({"--model-ema-decay", "0.9"}, {"--model-ema-decay", "give --model-ema"});
  refuse_train({"--model-ema-steps", "2"}, {"--model-ema-steps", "give --model-ema"});
  refuse_train({"--model-ema", "--model-ema-steps", "0"}, {"--model-ema-steps", "at least 1"});
  refuse_train({"--model-ema", "--model-ema-decay", "1.1"}, {"--model-ema-decay", "at most 1"});
  refuse_train({"--split-seed", "2"}, {"--split-seed", "give --val-split"});
  refuse_train({"--val-split", "-1"}, {"--val-split", "at least 0"});
  refuse_train({"--auto-resume", "--resume", "x"}, {"--auto-resume", "one of them"});
  refuse(small("sgd-ph", 1, "", {"--probe-cycle", "3"}), {"probe_cycle"});
  refuse(small("sgd-ph", 1, "", {"--refresh", "joint"}), {"Joint"});
  for (const std::string part : {"2", "0", "1/0", "eighth"}) {
    refuse(small("sgd-ph", 1, "", {"--curvature-batch", part}), {"--curvature-batch", "'" + part + "'"});
  }
  refuse_train({"--kernels", "fats"}, {"'fats'", "'fast'"});
}

TEST_F(Options, WhatWouldDoNothingIsRefused) {
  refuse_train({"--model", "vgg11", "--stem-stride", "2"}, {"--stem-stride: vgg11 has no stem"});
  refuse_train({"--eval-every", "1.5"}, {"--eval-every: 1.5 is no whole number of steps"});
  refuse_train({"--eval-limit", "100"}, {"--eval-limit", "give --eval-every"});
  refuse_train({"--norm", "none", "--norm-weight-decay", "0"}, {"--norm-weight-decay", "no norm layers"});
  refuse_train({"--lr-scheduler", "linear", "--lr-step-size", "3"}, {"--lr-step-size", "schedule step", "is linear"});
  refuse_train({"--lr-scheduler", "cosine", "--lr-gamma", "0.5"}, {"--lr-gamma", "step and multistep"});
  refuse_train({"--lr-min", "0.01"}, {"--lr-min", "cosine and linear", "is step"});
  refuse_train({"--lr-warmup-decay", "0.1"}, {"--lr-warmup-decay", "give --lr-warmup-epochs"});
  refuse({"compare", "--data-path", data(), "--lr-scheduler", "linear", "--lr-step-size", "3"}, {"--lr-step-size"});
}

TEST_F(Options, WhatARecipeSetsForTheGeneralCaseMayDoNothing) {
  const auto file = in_folder("recipe.toml");
  write_bytes(
      file,
      "[run]\nlr_step_size = 3\nlr_gamma = 0.5\neval_limit = 100\nstem_stride = 2\nnorm_weight_decay = 0.0\n"
      "lr_warmup_decay = 0.1\nlr_milestones = [1]\nsplit_seed = 2\nmodel_ema_steps = 2\nmodel_ema_decay = 0.5\n");
  const Words dry{"train", "--config", file, "--data-path", data(), "--dry-run"};
  succeed(dry + Words{"--lr-scheduler", "linear", "--norm", "none"});
  succeed(dry + Words{"--model", "vgg11", "--form", "cifar", "--width", "0.05", "--lr-scheduler", "constant"});
  // So may an option that says no more than what holds anyway.
  succeed({"train", "--data-path", data(), "--dry-run", "--eval-limit", "0", "--stem-stride", "0"});
}

TEST_F(Options, ASettingTheOptimizerDoesNotHaveIsRefused) {
  refuse_train({"--opt", "adam", "--rule", "paper"}, {"rule is not a setting of adam"});
  refuse_train({"--opt", "sgdm", "--curvature-batch", "1/8"}, {"curvature_batch is not a setting of sgdm"});
}

TEST_F(Options, MistakesInARecipeFileAreNamedWithTheirLine) {
  const auto file = in_folder("recipe.toml");
  const auto refuse_recipe = [&](const std::string& text, const Words& says) {
    write_bytes(file, text);
    refuse_train({"--config", file}, Words{file} + says);
  };
  refuse_recipe("[run]\nepochs = 1\nlerning_rate = 0.1\n", {":3:", "unknown key 'lerning_rate'"});
  refuse_recipe("[run]\nepoch = 1\n", {":2:", "did you mean 'epochs'?"});
  refuse_recipe("[run]\nepochs = 'two'\n", {":2:", "a whole number", "'two'"});
  refuse_recipe("[run]\ndata_path = \"a\\u0000b\"\n", {":2:", "data_path", "number 0"});
  refuse_recipe("[run]\ndata_path = \"a\\nb\"\n", {":2:", "data_path", "one line"});
  refuse_recipe("[run\nepochs = 1\n", {":1:"});
  refuse_recipe("epochs = 1\n", {":1:", "unknown key 'epochs'", "[run]"});
  refuse_recipe("[optimizer.sgdph]\nlr = 1\n", {"'sgdph'", "'sgd-ph'"});
  refuse_recipe("[optimizer.adam]\nrule = 'paper'\n", {":2:", "not a setting of adam"});
  refuse_train({"--config", in_folder("none.toml")}, {"none.toml", "No such file"});
}

class Data : public CommandTest {
 protected:
  /// A copy of the data, to break something in it.
  fs::path copy() const {
    const auto path = folder() / "data";
    fs::copy(data(), path, fs::copy_options::recursive);
    return path;
  }
  Words train_on(const fs::path& path) const {
    return {"train", "--data-path", path.string(), "--output-dir", in_folder("run")};
  }
};

TEST_F(Data, AMissingFolderIsNamedWithTheRemedy) {
  refuse(
      {"train", "--data-path", in_folder("nowhere")},
      {"the data folder " + in_folder("nowhere") +
       " does not exist; give the folder that has it with --data-path, or "
       "install Debian's dataset-fashion-mnist"});
}

TEST_F(Data, ATruncatedFileIsNamed) {
  const auto path = copy();
  const std::string name = "train-images-idx3-ubyte.gz";
  fs::resize_file(path / name, 5000);
  refuse(train_on(path), {name});
}

TEST_F(Data, ALabelOutOfRangeIsNamed) {
  const auto path = copy();
  const std::string name = "train-labels-idx1-ubyte.gz";
  write_bytes(path / name, gzip(idx_bytes({256}, std::string(255, '\x01') + char{77})));
  refuse(train_on(path), {name, "77"});
}

TEST_F(Data, AWrongRecordSizeIsNamed) {
  const auto cifar = folder() / "cifar-100-binary";
  fs::create_directory(cifar);
  for (const auto* part : {"train.bin", "test.bin"}) write_bytes(cifar / part, std::string(3074 * 4 + 1, '\0'));
  refuse(train_on(cifar) + Words{"--dataset", "cifar100"}, {"train.bin", "3074"});
}

TEST_F(Data, ABatchLargerThanTheDataIsRefused) {
  refuse(train_on(data()) + Words{"-b", "257"}, {"257", "256"});
  refuse(train_on(data()) + Words{"--val-split", "256"}, {"--val-split: 256 leaves nothing of 256 training images"});
  refuse(train_on(data()) + Words{"--val-split", "200", "-b", "64"}, {"64", "56"});
  refuse(train_on(data()) + Words{"--val-split", "1e-6"}, {"--val-split", "is not one image"});
  refuse(train_on(data()) + Words{"--val-split", "10.5"}, {"--val-split", "whole"});
}

TEST_F(Data, ALastBatchOfOneImageIsRefusedWhereItCannotBeTrainedOn) {
  const Words network{"-b", "32", "--form", "imagenet", "--model", "resnet18", "--width", "0.1"};
  refuse(train_on(data()) + network + Words{"--train-limit", "33"}, {"one image", "--batch-size"});
}

TEST_F(Data, AnEmptyClassFolderIsNamed) {
  const auto root = folder() / "imagenet";
  for (const auto* name : {"train/n01", "train/n02", "val/n01", "val/n02"}) fs::create_directories(root / name);
  refuse({"train", "--dataset", "imagenet", "--data-path", root.string()}, {"n01"});
}

class Output : public CommandTest {};

TEST_F(Output, AFolderThatHoldsARunIsRefused) {
  const auto output = in_folder("run");
  succeed(small("sgdm", 1, output));
  refuse(small("sgdm", 1, output), {"already holds a run", "--resume " + output});
}

TEST_F(Output, AFolderThatCannotBeWrittenToIsRefused) {
  write_bytes(folder() / "file", "");
  refuse(small("sgdm", 1, in_folder("file/run")), {"cannot write", "--output-dir"});
  refuse(small("sgdm", 1, "/proc/run"), {"/proc/run"});
}

TEST_F(Output, AResumedRunThatIsNotThereIsRefused) {
  refuse({"train", "--resume", in_folder("none")}, {"none", "does not exist"});
  fs::create_directory(folder() / "empty");
  refuse({"train", "--resume", in_folder("empty")}, {"holds no run"});
}

TEST_F(Output, ACheckpointOfAnotherModelIsRefused) {
  const auto output = in_folder("run");
  succeed(small("sgdm", 1, output));
  const auto checkpoint = output + "/checkpoint-000000008.ckpt";
  refuse({"eval", checkpoint, "--model", "resnet20"}, {"another model", "resnet8", "resnet20"});
  refuse(small("sgdm", 1, in_folder("new"), {"--init", checkpoint, "--model", "resnet20"}), {checkpoint});
  refuse({"eval", data() + "/train-labels-idx1-ubyte.gz", "--data-path", data()}, {"train-labels"});
  refuse({"eval", output, "--recipe", "cifar10"}, {"--recipe"});
  refuse({"train", "--test-only", "--resume", output, "--lr", "5"}, {"--lr", "evaluation"});
  const auto older = output + "/checkpoint-000000001.ckpt";
  fs::copy_file(checkpoint, older);
  refuse({"train", "--resume", older}, {"not the newest"});
}

TEST_F(Output, OnlyMoreEpochsMayBeAskedForWhenARunIsContinued) {
  const auto output = in_folder("run");
  succeed(small("sgdm", 1, output));
  refuse({"train", "--resume", output, "--lr", "0.5"}, {"lr is 0.1", "0.5"});
  refuse({"train", "--resume", output, "--model", "resnet20"}, {"model is", "resnet20"});
  refuse(
      {"train", "--resume", output, "--norm-weight-decay", "0"}, {"norm_weight_decay is not set in this run, not 0.0"});
  succeed({"train", "--resume", output, "--epochs", "2"});
  refuse({"train", "--resume", output, "--epochs", "1"}, {"--epochs", "2 epochs already"});
  EXPECT_EQ(records_of(output + "/log.jsonl", "epoch").size(), 2U);
}

}  // namespace
}  // namespace sgdph::test::input_test
