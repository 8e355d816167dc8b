"""Bad input: one clear line, exit code 2, nothing written."""

import os
import shutil
import unittest
from pathlib import Path

import support


class Options(support.CommandTest):
    def test_an_unknown_option_is_refused_with_the_nearest_name(self):
        self.refuse("train", "--modle", "resnet8", says=["unknown option '--modle'", "'--model'"])
        self.refuse("train", "--modle=resnet8", says="did you mean '--model'?")

    def test_an_unknown_command_is_refused_with_the_nearest_name(self):
        self.refuse("trian", says=["unknown command 'trian'", "'train'"])
        self.refuse("data", "fetsh", says="did you mean 'fetch'?")

    def test_unknown_names_are_refused_with_the_nearest_one(self):
        self.refuse("train", "--model", "resnet81", says=["unknown model 'resnet81'", "'resnet18'"])
        self.refuse("train", "--norm", "bach", says=["'bach'", "'batch'"])
        self.refuse("train", "--opt", "sgdph", says=["unknown optimizer 'sgdph'", "'sgd-ph'"])
        self.refuse("train", "--dataset", "cifar1000", says=["'cifar1000'", "'cifar100'"])
        self.refuse("train", "--recipe", "cifar", says=["unknown recipe 'cifar'", "'cifar10'"])
        self.refuse("compare", "--opts", "sgdm,adma", says=["unknown optimizer 'adma'", "'adam'"])
        self.refuse("compare", "--seeds", "many", says=["--seeds", "'many'"])

    def test_values_of_the_wrong_kind_or_out_of_range_are_refused(self):
        self.refuse("train", "--lr", "fast", says=["--lr", "a number", "'fast'"])
        self.refuse("train", "--epochs", "2.5", says=["--epochs", "a whole number", "'2.5'"])
        self.refuse("train", "--epochs", "0", says=["--epochs", "at least 1", "0"])
        self.refuse("train", "--label-smoothing", "2", says=["--label-smoothing", "at most 1"])
        self.refuse("train", "--lr", "nan", says=["--lr", "finite"])
        self.refuse("train", "--width", "0", says=["--width", "above 0"])
        self.refuse("train", "--device", "tpu", says=["--device", "'tpu'"])
        self.refuse("train", "--opt", "adam", "--beta1", "1", says=["--beta1", "below 1"])
        self.refuse("train", "--opt", "sgdm", "--momentum", "1", says=["--momentum", "below 1"])
        self.refuse("train", "--lr", "1e39", says=["--lr", "at most 1e+38"])
        self.refuse("train", "--lr-scheduler", "multistep", says=["--lr-milestones"])
        self.refuse("train", "--lr-scheduler", "multistep", "--lr-milestones", "3,2", says=["--lr-milestones", "3,2"])
        self.refuse("train", "--lr-milestones", "3", says=["--lr-milestones", "multistep"])
        self.refuse("train", "--lr-scheduler", "cosine", "--lr-min", "5", says=["--lr-min"])
        self.refuse("train", "--data-path", b"\xff", says=["--data-path", "UTF-8"])
        self.refuse(*self.small("sgd-ph", 1, None, "--probe-cycle", 3), says="probe_cycle")
        self.refuse(*self.small("sgd-ph", 1, None, "--refresh", "joint"), says="Joint")
        for part in ("2", "0", "1/0", "eighth"):
            self.refuse(*self.small("sgd-ph", 1, None, "--curvature-batch", part), says=["--curvature-batch", f"'{part}'"])
        self.refuse("train", "--kernels", "fats", says=["'fats'", "'fast'"])

    def test_a_setting_the_optimizer_does_not_have_is_refused(self):
        self.refuse("train", "--opt", "adam", "--rule", "paper", says=["rule is not a setting of adam"])
        self.refuse("train", "--opt", "sgdm", "--curvature-batch", "1/8", says=["curvature_batch is not a setting of sgdm"])

    def test_mistakes_in_a_recipe_file_are_named_with_their_line(self):
        file = self.folder / "recipe.toml"

        def recipe(text, *says):
            file.write_text(text)
            self.refuse("train", "--config", file, says=[f"{file}", *says])

        recipe("[run]\nepochs = 1\nlerning_rate = 0.1\n", ":3:", "unknown key 'lerning_rate'")
        recipe("[run]\nepoch = 1\n", ":2:", "did you mean 'epochs'?")
        recipe("[run]\nepochs = 'two'\n", ":2:", "a whole number", "'two'")
        recipe("[run\nepochs = 1\n", ":1:")
        recipe("epochs = 1\n", ":1:", "unknown key 'epochs'", "[run]")
        recipe("[optimizer.sgdph]\nlr = 1\n", "'sgdph'", "'sgd-ph'")
        recipe("[optimizer.adam]\nrule = 'paper'\n", ":2:", "not a setting of adam")
        self.refuse("train", "--config", self.folder / "none.toml", says=["none.toml", "No such file"])


class Data(support.CommandTest):
    def broken(self, break_it):
        """A copy of the data with something broken."""
        copy = self.folder / "data"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy)
        break_it(copy)
        return ["train", "--data-path", copy, "--output-dir", self.folder / "run"]

    def test_a_missing_folder_is_named_with_the_remedy(self):
        self.refuse("train", "--data-path", self.folder / "nowhere", says=["nowhere", "dataset-fashion-mnist"])

    def test_a_truncated_file_is_named(self):
        name = "train-images-idx3-ubyte.gz"
        words = self.broken(lambda folder: os.truncate(folder / name, 5000))
        self.refuse(*words, says=name)

    def test_a_label_out_of_range_is_named(self):
        name = "train-labels-idx1-ubyte.gz"
        words = self.broken(lambda folder: support.write_idx(folder / name, (256,), bytes([1] * 255 + [77])))
        self.refuse(*words, says=[name, "77"])

    def test_a_wrong_record_size_is_named(self):
        def cut(folder):
            cifar = folder / "cifar-100-binary"
            cifar.mkdir()
            for part in ("train", "test"):
                (cifar / f"{part}.bin").write_bytes(bytes(3074 * 4 + 1))

        words = self.broken(cut)
        words[2] = words[2] / "cifar-100-binary"
        self.refuse(*words, "--dataset", "cifar100", says=["train.bin", "3074"])

    def test_a_batch_larger_than_the_data_is_refused(self):
        words = self.broken(lambda folder: None)
        self.refuse(*words, "-b", "257", says=["257", "256"])

    def test_a_last_batch_of_one_image_is_refused_where_it_cannot_be_trained_on(self):
        words = self.broken(lambda folder: None)
        words += ["-b", "32", "--form", "imagenet", "--model", "resnet18", "--width", "0.1"]
        self.refuse(*words, "--train-limit", "33", says=["one image", "--batch-size"])

    def test_an_empty_class_folder_is_named(self):
        root = self.folder / "imagenet"
        for part in ("train", "val"):
            for name in ("n01", "n02"):
                (root / part / name).mkdir(parents=True)
        self.refuse("train", "--dataset", "imagenet", "--data-path", root, says="n01")

    def test_a_corrupt_jpeg_is_named_and_skipped_only_if_asked(self):
        images = self.image_folder()
        if images is None:
            self.skipTest("the tool that writes sample images was not given")
        victim = sorted((images / "train").glob("*/*"))[0]
        victim.write_bytes(victim.read_bytes()[:100])
        words = ["train", "--dataset", "imagenet", "--data-path", images, "--model", "resnet18", "--width", "0.05"]
        words += ["-b", "4", "--epochs", "1", "--output-dir", self.folder / "run"]
        self.refuse(*words, says=victim.name)
        self.succeed(*words, "--skip-damaged")
        self.assertEqual(support.records(self.folder / "run")[1]["damaged_images"], 1)

    def image_folder(self):
        shared = os.environ.get("SGDPH_SAMPLE_IMAGES")
        if not shared:
            return None
        root = self.folder / "images"
        import subprocess

        subprocess.run([shared, root], check=True)
        return root


class Output(support.CommandTest):
    def test_a_folder_that_holds_a_run_is_refused(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, output))
        self.refuse(*self.small("sgdm", 1, output), says=["already holds a run", f"--resume {output}"])

    def test_a_folder_that_cannot_be_written_to_is_refused(self):
        (self.folder / "file").write_text("")
        self.refuse(*self.small("sgdm", 1, self.folder / "file" / "run"), says=["cannot write", "--output-dir"])
        self.refuse(*self.small("sgdm", 1, "/proc/run"), says=["/proc/run"])

    def test_a_resumed_run_that_is_not_there_is_refused(self):
        self.refuse("train", "--resume", self.folder / "none", says=["none", "does not exist"])
        (self.folder / "empty").mkdir()
        self.refuse("train", "--resume", self.folder / "empty", says=["holds no run"])

    def test_a_checkpoint_of_another_model_is_refused(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, output))
        checkpoint = max(output.glob("*.ckpt"))
        self.refuse("eval", checkpoint, "--model", "resnet20", says=["another model", "resnet8", "resnet20"])
        self.refuse(*self.small("sgdm", 1, self.folder / "new", "--init", checkpoint, "--model", "resnet20"),
                    says=str(checkpoint))
        self.refuse("eval", self.data / "train-labels-idx1-ubyte.gz", "--data-path", self.data, says="train-labels")
        self.refuse("eval", output, "--recipe", "cifar10", says="--recipe")
        self.refuse("train", "--test-only", "--resume", output, "--lr", "5", says=["--lr", "evaluation"])
        newest, older = sorted(output.glob("*.ckpt"))[-1], output / "checkpoint-000000001.ckpt"
        shutil.copy(newest, older)
        self.refuse("train", "--resume", older, says="not the newest")


if __name__ == "__main__":
    unittest.main(verbosity=2)
