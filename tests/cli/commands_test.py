"""What the commands do when all is well."""

import csv
import json
import os
import shutil
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree

import support

OF_THE_PAPER = ["sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "sgd-ph"]


class Train(support.CommandTest):
    def test_the_stored_settings_fed_back_give_the_same_run(self):
        one, two = self.folder / "one", self.folder / "two"
        self.succeed(*self.small("sgd-ph", 2, one, "--rule", "paper", "--probe", "hadamard", "--lr-milestones", "1,2",
                                 "--lr-scheduler", "multistep", "--no-augment", "--label-smoothing", "0.1"))
        self.succeed("train", "--config", one / "settings.toml", "--output-dir", two)
        self.assert_same_run(one, two)
        self.assertEqual((one / "settings.toml").read_text(), (two / "settings.toml").read_text())

    def test_options_override_a_file_which_overrides_the_recipe(self):
        file = self.folder / "mine.toml"
        file.write_text("[run]\nepochs = 7\nbatch_size = 16\n[optimizer.adam]\nlr = 0.5\n[optimizer.sgdm]\nlr = 0.25\n")
        words = ["train", "--recipe", "fashion-mnist", "--config", file, "-b", "8", "--data-path", self.data, "--dry-run"]
        shown = self.succeed(*words, "--opt", "sgdm").stdout
        for part in ["epochs=7", "batch_size=8", "lr=0.25", "weight_decay=0.0001", "lr_scheduler=cosine"]:
            self.assertIn(part, shown)
        self.assertFalse((self.folder / "runs").exists())

    def test_the_log_has_a_header_one_record_per_epoch_and_an_end(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 3, output, "--seed", 5))
        header, *epochs, end = support.records(output)
        self.assertEqual(header["type"], "header")
        for key in ("settings", "version", "libtorch", "cpu", "threads", "seed"):
            self.assertIn(key, header)
        self.assertEqual(header["seed"], 5)
        self.assertEqual([r["epoch"] for r in epochs], [1, 2, 3])
        self.assertEqual(end["status"], "finished")
        self.assertEqual(end["test_top1"], epochs[-1]["test_top1"])

    @support.slow
    def test_tests_within_epochs_change_nothing_and_continue_with_the_run(self):
        calm, often, stopped = (self.folder / name for name in ("calm", "often", "stopped"))
        self.succeed(*self.small("sgd-ph", 3, calm, "--checkpoint-every", "1"))
        evals = ["--eval-every", "0.25", "--eval-limit", "32", "--checkpoint-every", "1"]
        self.succeed(*self.small("sgd-ph", 3, often, *evals))
        self.assertEqual((calm / "model.pt").read_bytes(), (often / "model.pt").read_bytes())
        found = [record for record in support.records(often) if record["type"] == "eval"]
        self.assertEqual([record["step"] for record in found], [2, 4, 6, 10, 12, 14, 18, 20, 22])
        self.assertEqual([record["epoch"] for record in found][:4], [0.25, 0.5, 0.75, 1.25])
        self.assertEqual({record["images"] for record in found}, {32})
        for _ in range(4):
            child = subprocess.Popen(self.command(*self.small("sgd-ph", 3, stopped, *evals)) if not stopped.exists() else
                                     self.command("train", "--resume", stopped), stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            before = len(list(stopped.glob("*.ckpt"))) and max(stopped.glob("*.ckpt"))
            while child.poll() is None and before == (len(list(stopped.glob("*.ckpt"))) and max(stopped.glob("*.ckpt"))):
                time.sleep(0.001)
            child.kill()
            child.wait()
        self.succeed("train", "--resume", stopped)
        self.assert_same_run(often, stopped)

    @support.slow
    def test_tests_within_epochs_take_as_many_images_as_they_are_told_to(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run, "--eval-every", "4", "--eval-limit", "40"))
        self.assertEqual([r["images"] for r in support.records(run) if r["type"] == "eval"], [40])

    @support.slow
    def test_the_logs_rate_of_an_epoch_is_that_of_its_last_step(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output, "--lr", "0.8", "--lr-scheduler", "linear"))
        rates = [record["lr"] for record in support.records(output) if record["type"] == "epoch"]
        self.assertEqual([round(rate, 12) for rate in rates], [0.45, 0.05])  # of 16 steps the 8th and the last

    @support.slow
    def test_the_result_does_not_depend_on_the_number_of_workers(self):
        for workers in (0, 1, 4):
            self.succeed(*self.small("sgdm", 1, self.folder / f"w{workers}", "-j", workers))
        models = {(self.folder / f"w{workers}" / "model.pt").read_bytes() for workers in (0, 1, 4)}
        self.assertEqual(len(models), 1)

    @support.slow
    def test_accumulated_batches_are_one_step(self):
        self.succeed(*self.small("sgdm", 1, self.folder / "run", "--accumulate", 4))
        self.assertEqual(support.records(self.folder / "run")[1]["step"], 2)

    @support.slow
    def test_fast_and_stock_layers_give_the_same_run_but_for_rounding_and_take_each_others_weights(self):
        runs = {kernels: self.folder / kernels for kernels in ("fast", "stock")}
        for kernels, output in runs.items():
            self.succeed(*self.small("sgd-ph", 1, output, "--kernels", kernels))
            self.assertEqual(support.records(output)[0]["settings"]["kernels"], kernels)
        fast, stock = (support.records(output)[1] for output in runs.values())
        self.assertAlmostEqual(fast["train_loss"], stock["train_loss"], delta=1e-3 * stock["train_loss"])
        for kernels, other in (("fast", "stock"), ("stock", "fast")):
            output = self.folder / f"{other}-for-{kernels}"
            self.succeed(*self.small("sgdm", 1, output, "--lr", "0", "--kernels", other, "--norm", "none"))
            again = self.folder / f"{kernels}-from-{other}"
            self.succeed(*self.small("sgdm", 1, again, "--lr", "0", "--kernels", kernels, "--norm", "none", "--seed", 9,
                                     "--init", output / "model.pt"))
            self.assertEqual((output / "model.pt").read_bytes(), (again / "model.pt").read_bytes())

    @support.slow
    def test_curvature_from_part_of_the_batch_is_another_run(self):
        outputs = [self.folder / name for name in ("whole", "eighth", "same")]
        for output, part in zip(outputs, ("1", "1/8", "0.125")):
            self.succeed(*self.small("sgd-ph", 2, output, "--curvature-batch", part))
        models = [(output / "model.pt").read_bytes() for output in outputs]
        self.assertNotEqual(models[0], models[1])
        self.assertEqual(models[1], models[2])

    @support.slow
    def test_a_run_starts_from_weights_of_another(self):
        one, two, three = (self.folder / name for name in ("one", "two", "three"))
        options = ["--norm", "none", "--lr"]
        self.succeed(*self.small("sgdm", 2, one, *options, "0.01"))
        self.succeed(*self.small("sgdm", 1, two, *options, "0", "--init", one / "model.pt", "--seed", 9))
        self.assertEqual((one / "model.pt").read_bytes(), (two / "model.pt").read_bytes())
        self.succeed(*self.small("sgdm", 1, three, *options, "0", "--init", max(one.glob("*.ckpt")), "--seed", 9))
        self.assertEqual((one / "model.pt").read_bytes(), (three / "model.pt").read_bytes())


class Refusals(support.CommandTest):
    """Two of many, end to end; the others run in the process of cli.input and cli.refusals."""

    def test_an_unknown_option_is_refused_with_the_nearest_name(self):
        self.refuse("train", "--modle", "resnet8", says=["unknown option '--modle'", "'--model'"])

    @support.slow
    def test_a_corrupt_jpeg_is_named_and_skipped_only_if_asked(self):
        images = self.folder / "images"
        support.write_samples("images", images)
        victim = sorted((images / "train").glob("*/*"))[0]
        victim.write_bytes(victim.read_bytes()[:100])
        words = ["train", "--dataset", "imagenet", "--data-path", images, "--model", "resnet18", "--width", "0.05"]
        words += ["-b", "4", "--epochs", "1", "--output-dir", self.folder / "run"]
        self.refuse(*words, says=victim.name)
        self.succeed(*words, "--skip-damaged")
        self.assertEqual(support.records(self.folder / "run")[1]["damaged_images"], 1)


class Eval(support.CommandTest):
    def test_it_gives_the_figures_of_the_log_for_folder_checkpoint_and_weights(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output))
        logged = [r for r in support.records(output) if r["type"] == "epoch"][-1]
        checkpoint = max(output.glob("*.ckpt"))
        weights = ["--dataset", "fashion-mnist", "--data-path", self.data, "--width", "0.5", "-b", "32", "--threads", "1"]
        for words in ([output], [checkpoint], [output / "model.pt", *weights]):
            figures = json.loads(self.succeed("eval", *words, "--json").stdout)
            self.assertEqual(figures["top1"], logged["test_top1"])
            self.assertEqual(figures["top5"], logged["test_top5"])
            self.assertAlmostEqual(figures["loss"], logged["test_loss"], places=6)
        self.refuse("eval", output, "--weights", "best", says="it has no --val-split")
        self.succeed("train", "--test-only", "--resume", output)
        self.succeed("eval", checkpoint, "--export", self.folder / "again.pt")
        self.assertEqual((self.folder / "again.pt").read_bytes(), (output / "model.pt").read_bytes())


    @support.slow
    def test_it_takes_the_best_weights_by_validation(self):
        output = self.folder / "run"
        spoiled = ["--lr-scheduler", "multistep", "--lr-milestones", "2", "--lr-gamma", "300"]
        self.succeed(*self.small("sgdm", 4, output, "--val-split", "64", *spoiled))
        end = support.records(output)[-1]
        self.assertLess(end["best_epoch"], 4)
        last, best = (json.loads(self.succeed("eval", output, "--weights", weights, "--json").stdout)
                      for weights in ("last", "best"))
        self.assertEqual((best["source"], best["epoch"]), (str(output / "best.pt"), end["best_epoch"]))
        for figure in ("top1", "top5"):
            self.assertEqual((last[figure], best[figure]), (end["test_" + figure], end["best_test_" + figure]))
        self.refuse("eval", max(output.glob("*.ckpt")), "--weights", "best", says="give the run's folder")
        self.refuse("eval", output, "--weights", "first", says="--weights")
        self.refuse("eval", output, "--weights", "ema", says="the run had no --model-ema")

    @support.slow
    def test_it_takes_the_average_of_weights_and_the_runs_arithmetic(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgd-ph", 2, output, "--model-ema", "--model-ema-steps", "1", "--model-ema-decay", "0.99",
                                 "--amp", "bf16"))
        end = support.records(output)[-1]
        newest = max(output.glob("*.ckpt"))
        weights = ["--dataset", "fashion-mnist", "--data-path", self.data, "--width", "0.5", "-b", "32", "--threads", "1"]
        for words in ([output, "--weights", "ema"], [newest, "--weights", "ema"],
                      [output / "ema.pt", *weights, "--amp", "bf16"]):
            self.assertEqual(json.loads(self.succeed("eval", *words, "--json").stdout)["top1"], end["ema_test_top1"])
        self.refuse("eval", output / "ema.pt", *weights, "--weights", "ema", says="is a state dict")
        whole, half = (json.loads(self.succeed("eval", output, "--amp", amp, "--json").stdout)["loss"]
                       for amp in ("none", "bf16"))
        self.assertNotEqual(whole, half)
        self.assertAlmostEqual(whole, half, delta=0.1 * whole)


class Compare(support.CommandTest):
    def words(self, *extra):
        return ["compare", "--data-path", self.data, "--width", "0.5", "-b", "32", "--epochs", "2", "--threads", "1",
                "--output-dir", self.folder / "cmp", *extra]

    def test_it_makes_tables_and_repeats_no_finished_run(self):
        words = self.words("--opts", "sgdm,sgd-ph", "--seeds", "2")
        text = self.succeed(*words).stdout
        self.assertIn("SGD-PH", text)
        self.assertIn("+-", text)
        self.assertIn(" *", text)
        folder = self.folder / "cmp"
        before = {p: p.stat().st_mtime_ns for p in folder.glob("*/log.jsonl")}
        self.assertEqual(len(before), 4)
        rows = json.loads(self.succeed(*words, "--format", "json").stdout)
        self.assertEqual(before, {p: p.stat().st_mtime_ns for p in folder.glob("*/log.jsonl")})
        by_name = {row["optimizer"]: row for row in rows}
        accuracies = [support.records(folder / f"sgd-ph-seed{seed}")[-1]["test_top1"] for seed in (1, 2)]
        self.assertAlmostEqual(by_name["sgd-ph"]["top1"]["mean"], sum(accuracies) / 2)
        self.assertAlmostEqual(by_name["sgd-ph"]["top1"]["std"], abs(accuracies[0] - accuracies[1]) / 2**0.5)
        self.assertEqual(by_name["sgdm"]["seconds_relative"], 1)
        self.assertGreater(by_name["sgd-ph"]["peak_memory_bytes"], 0)
        with open(folder / "summary.csv") as file:
            self.assertEqual([row["optimizer"] for row in csv.DictReader(file)], ["sgdm", "sgd-ph"])
        self.assertIn("**", (folder / "summary.md").read_text())
        self.assertEqual([p.name for p in folder.glob("*.toml")], [])

    @support.slow
    def test_more_epochs_continue_the_runs_and_are_not_taken_for_done(self):
        words = ["--opts", "sgdm", "--lr-scheduler", "constant"]
        self.succeed(*self.words(*words))
        self.succeed(*self.words(*words, "--epochs", "3"))
        self.assertEqual(support.records(self.folder / "cmp" / "sgdm-seed1")[-1]["epochs"], 3)
        self.refuse(*self.words(*words, "--epochs", "2"), says="it has 3 epochs, more than 2")

    @support.slow
    def test_with_validation_the_table_tells_it_from_the_test_set(self):
        done = self.succeed(*self.words("--opts", "sgdm,sgd-ph", "--val-split", "0.25"))
        for words in ("test at best validation %", "validation %", "first with", "SGD-PH took"):
            self.assertIn(words, done.stdout)
        row = json.loads((self.folder / "cmp" / "summary.json").read_text())[0]
        end = support.records(self.folder / "cmp" / "sgdm-seed1")[-1]
        for key, logged in (("top1", "test_top1"), ("best_top1", "best_test_top1"), ("val_top1", "val_top1")):
            self.assertEqual(row[key]["mean"], end[logged], key)
        self.succeed("report", self.folder / "cmp", "--figures", self.folder / "figures")
        page = (self.folder / "cmp" / "report.html").read_text()
        self.assertIn("Validation accuracy", page)
        self.assertNotIn("Test accuracy", page)
        self.assertIn("first with", page)
        self.assertEqual(len(list((self.folder / "figures").glob("*validation-accuracy.svg"))), 1)

    @support.slow
    def test_a_signal_to_it_alone_stops_it_and_its_run(self):
        words = self.words("--opts", "sgdm", "--epochs", "500")
        child = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not list((self.folder / "cmp").glob("*/*.ckpt")) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.terminate()
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, errors)

    @support.slow
    def test_it_goes_on_where_it_was_stopped(self):
        words = self.words("--opts", "sgdm,adam", "--checkpoint-every", "1")
        self.assertIn("the same command continues", self.stop_at_a_checkpoint(words, self.folder / "cmp"))
        self.succeed(*words)
        calm = self.folder / "calm"
        self.succeed(*self.small("sgdm", 2, calm, "--checkpoint-every", "1"))
        self.assert_same_run(calm, self.folder / "cmp" / "sgdm-seed1")

    @support.slow
    def test_a_run_that_diverges_has_its_place_in_the_table(self):
        done = self.run_sgdph(*self.words("--opts", "sgdm", "--lr", "1e30"))
        self.assertEqual(done.returncode, 1, "as of a run by itself: there is no other")
        self.assertIn("1 diverged", done.stdout)


class Cost(support.CommandTest):
    def words(self, *extra):
        return ["cost", "--model", "resnet8", "--batch-size", "4,8", "--rounds", "2", "--threads", "1", *extra]

    @support.slow
    def test_it_makes_tables_json_and_a_picture(self):
        output = self.folder / "out"
        engines = "sgd-ph,sgd-ph-1/8-every-4,sgd-ph-stock,published"
        text = self.succeed(*self.words("--engines", engines, "--output-dir", output)).stdout
        for part in ("batch 4", "batch 8", "SGD-PH, published way", "of its time on LibTorch's own"):
            self.assertIn(part, text)
        report = json.loads((output / "cost.json").read_text())
        names = ["sgdm", "sgdm-stock", *engines.split(",")]
        self.assertEqual([row["engine"] for row in report["rows"]], 2 * names)
        for row in report["rows"]:
            self.assertEqual(row["ratio"]["count"], 2)
            self.assertGreater(row["seconds"]["value"], 0)
            self.assertGreaterEqual(row["held"]["worst"], row["held"]["mean"])
            self.assertGreater(row["held"]["mean"], 300_000)
        self.assertEqual(report["rows"][0]["ratio"]["value"], 1)
        self.assertEqual(report["rows"][0]["held"]["relative_mean"], 1)
        with open(output / "cost.csv") as file:
            self.assertEqual([row["engine"] for row in csv.DictReader(file)], 2 * names)
        self.assertIn("| SGD-PH", (output / "cost.md").read_text())
        self.assertEqual(xml.etree.ElementTree.parse(output / "cost.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg")

    @support.slow
    def test_every_format_is_printed_and_nothing_is_written_unasked(self):
        words = ["--engines", "sgdm", "--no-memory", "--batch-size", "4", "--format"]
        rows = json.loads(self.succeed(*self.words(*words, "json")).stdout)["rows"]
        self.assertEqual([(row["engine"], row["held"]["mean"]) for row in rows], [("sgdm", 0)])
        self.assertTrue(self.succeed(*self.words(*words, "csv")).stdout.startswith("model,batch_size,engine,"))
        self.assertIn("|---|", self.succeed(*self.words(*words, "markdown")).stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    @support.slow
    def test_positions_name_every_block(self):
        words = ["--engines", "sgd-ph", "--batch-size", "4", "--positions", "--format", "csv", "--rounds", "30"]
        rows = list(csv.DictReader(self.succeed(*self.words(*words)).stdout.splitlines()))
        self.assertEqual([int(row["depth"]) for row in rows], list(range(1, len(rows) + 1)))
        self.assertEqual(rows[0]["block"], "bn1.weight")
        for row in rows:
            self.assertGreater(float(row["ratio"]), 0)
            self.assertGreater(float(row["held_relative"]), 1)

    @support.slow
    def test_a_signal_ends_it_with_what_was_measured(self):
        words = ["cost", "--model", "resnet8", "--batch-size", "4", "--engines", "adam", "--no-memory", "--threads", "1"]
        code, text, shown = self.on_terminal([*words, "--seconds", "600", "--format", "json"], interrupt_at=rb"round [2-9]")
        self.assertEqual(code, 130, shown)
        self.assertIn(b"stopped", shown)
        self.assertEqual([row["engine"] for row in json.loads(text)["rows"]], ["sgdm", "adam"])


class Scale(support.CommandTest):
    def report(self, *extra):
        return json.loads(self.succeed("scale", "--model", "resnet8", "--format", "json", *extra).stdout)

    @support.slow
    def test_it_prints_a_model_with_the_step_of_this_machine_in_it(self):
        words = ["scale", "--model", "resnet8", "-b", "4", "--rounds", "3", "--threads", "1"]
        text = self.succeed(*words).stdout
        for part in ("A model, not a measurement", "measured here", "1024", "SGD-PH, spread", "efficiency"):
            self.assertIn(part, text)
        report = self.report("-b", "4", "--rounds", "3", "--threads", "1", "--ranks", "4,1")
        self.assertEqual(report["kind"], "model")
        self.assertTrue(report["measured"])
        self.assertGreater(report["step"]["seconds"], 0)
        self.assertEqual([row["ranks"] for row in report["rows"]], [1, 4])
        self.assertAlmostEqual(report["rows"][0]["first_order"], report["step"]["seconds"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_step_may_be_given(self):
        report = self.report("--step", "100", "--ranks", "1,8", "--bandwidth", "1", "--hop", "0")
        self.assertFalse(report["measured"])
        self.assertAlmostEqual(report["step"]["product_seconds"], 0.1 * 2 / 3)
        transfer = 2 * 7 / 8 * report["step"]["parameters"] * 32 / 1e9
        self.assertAlmostEqual(report["rows"][1]["transfer"], transfer)
        self.assertEqual(report["rows"][1]["hops"], 0)
        slower = self.report("--step", "100", "--product", "500", "--ranks", "1")
        self.assertAlmostEqual(slower["rows"][0]["sgd_ph"], 0.6)
        rows = list(csv.DictReader(self.succeed("scale", "--step", "9", "--format", "csv").stdout.splitlines()))
        self.assertEqual([int(row["ranks"]) for row in rows], [2**i for i in range(11)])
        self.assertIn("|---|", self.succeed("scale", "--step", "9", "--format", "markdown").stdout)


class Lists(support.CommandTest):
    def test_every_list_names_what_there_is(self):
        listed = [line.split()[0] for line in self.succeed("list", "optimizers").stdout.splitlines()]
        self.assertEqual([name for name in listed if name in OF_THE_PAPER], OF_THE_PAPER)
        self.assertEqual(len(set(listed)), len(listed))
        self.assertIn("resnet18", self.succeed("list", "models").stdout)
        self.assertIn("mini-imagenet", self.succeed("list", "data").stdout)
        self.assertIn("cifar100", self.succeed("list", "recipes").stdout)

    def test_help_names_every_option_with_its_default(self):
        text = self.succeed("train", "--help").stdout
        for part in ("--lr-step-size", "--resume", "128", "--no-augment"):
            self.assertIn(part, text)
        self.assertRegex(text, "-b, *--batch-size")  # newer CLI11 aligns them

    def complete(self, *words):
        completion = self.root / "completion.bash"  # made once
        if not completion.exists():
            completion.write_text(self.succeed("completion", "bash").stdout)
        script = 'source "$0"; COMP_WORDS=(sgdph "$@"); COMP_CWORD=$#; _sgdph; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, completion, *words], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_names(self):
        self.assertEqual(self.complete("tr"), ["train"])
        self.assertEqual(self.complete("train", "--lr-st"), ["--lr-step-size"])
        self.assertEqual(self.complete("train", "--model", "resnet1"), ["resnet18"])
        self.assertEqual(self.complete("train", "--probe", "h"), ["hadamard"])
        self.assertEqual(self.complete("data", "fe"), ["fetch"])
        self.assertEqual(self.complete("data", "fetch", "fash"), ["fashion-mnist"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("cost", "--engines", "publ"), ["published"])

    def test_the_manual_page_is_clean_and_names_every_command(self):
        page = self.succeed("man").stdout
        for name in ("train", "eval", "compare", "cost", "scale", "inspect", "report", "data fetch", "completion"):
            self.assertIn(f"sgdph {name}", page)
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        (self.folder / "sgdph.1").write_text(page)
        done = subprocess.run(["man", "--warnings", "-l", "sgdph.1"], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "100", "PAGER": "cat"})
        self.assertEqual(done.stderr, "")
        self.assertIn("--lr-step-size", done.stdout)


if __name__ == "__main__":
    support.main()
