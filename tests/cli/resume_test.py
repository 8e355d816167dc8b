"""Runs that are stopped in every way and continued end with the same bits as undisturbed ones."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import support


class Resume(support.CommandTest):
    def kill_and_resume(self, opt, kills, epochs=24, extra=()):
        """Kills the run at random moments, `kills` times, then lets it finish; it must equal a calm one."""
        calm, wild = self.folder / "calm", self.folder / "wild"
        options = ["--checkpoint-every", 1, "--seed", 3, *extra]
        started = time.monotonic()
        subprocess.run(self.command(*self.small(opt, 1, None, "--dry-run")), capture_output=True, check=True)
        startup = time.monotonic() - started
        self.succeed(*self.small(opt, epochs, calm, *options))
        whole = max(r["step"] for r in support.records(calm) if r["type"] == "epoch")
        rng = random.Random(opt)
        steps, half_written = [], 0

        def newest():
            return max([int(p.stem.split("-")[1]) for p in wild.glob("*.ckpt")], default=0)

        for life in range(kills):
            words = ["train", "--resume", wild] if (wild / "settings.toml").exists() else self.small(opt, epochs, wild, *options)
            before = newest()
            child = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if life % 4 == 3:  # while it starts
                time.sleep(rng.uniform(0, startup))
            else:  # while it trains and writes; so many steps are too few for the whole run, however fast it is
                last = before + rng.randint(1, whole // (2 * kills))
                deadline = time.monotonic() + 60
                while newest() < last and time.monotonic() < deadline:
                    time.sleep(0.001)
                time.sleep(rng.uniform(0, 0.02))
            self.assertIsNone(child.poll(), "the run ended before it was killed")
            child.kill()
            child.wait()
            half_written += len(list(wild.glob("*.new")))
            steps.append(newest())
        print(f"{opt}: killed after checkpoints {steps}; {half_written} kills struck while a file was written", flush=True)
        self.assertGreater(steps[-1], kills * 3 // 4)
        self.succeed("train", "--resume", wild)
        self.assert_same_run(calm, wild)
        self.assertEqual(list(wild.glob("*.new")), [])

    @support.slow
    def test_a_run_of_sgdm_killed_five_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgdm", kills=5, epochs=10)

    @support.slow
    def test_a_run_of_sgd_ph_killed_five_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgd-ph", kills=5, epochs=10)

    @support.slow
    def test_a_run_of_adahessian_killed_three_times_ends_with_the_same_bits(self):
        self.kill_and_resume("adahessian", kills=3, epochs=4)

    @support.slow
    def test_a_run_of_adahessian_killed_five_times_ends_with_the_same_bits(self):
        self.kill_and_resume("adahessian", kills=5)

    @support.slow
    def test_a_run_with_validation_averages_and_bfloat16_killed_three_times_ends_with_the_same_bits(self):
        extra = ["--val-split", "0.25", "--model-ema", "--model-ema-steps", "2", "--model-ema-decay", "0.99", "--amp", "bf16",
                 "--norm-weight-decay", "0", "--eval-every", "0.5"]
        self.kill_and_resume("sgd-ph", kills=3, epochs=5, extra=extra)

    @support.slow
    def test_a_run_of_sgdm_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgdm", kills=20)

    @support.slow
    def test_a_run_of_sgd_ph_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgd-ph", kills=20)

    @support.slow
    def test_a_run_of_adahessian_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("adahessian", kills=20)

    def interrupted_run(self, output, *extra):
        """Starts a run, sends Ctrl-C once it has a checkpoint, and returns what it said."""
        words = self.small("sgd-ph", 500, output, "--checkpoint-every", 4, *extra)
        child = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not list(Path(output).glob("*.ckpt")) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, errors)
        return errors

    def test_ctrl_c_writes_a_checkpoint_and_says_how_to_continue(self):
        output = self.folder / "a user's run"
        errors = self.interrupted_run(output)
        self.assertEqual(shlex.split(errors.split("continue with: ")[1]), ["sgdph", "train", "--resume", str(output)])
        newest = max(output.glob("*.ckpt"))
        self.assertIn(str(newest), errors)
        step = int(newest.stem.split("-")[1])
        done = self.run_sgdph("eval", newest)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(step, 0)

    def test_the_same_command_starts_and_continues_a_run_with_auto_resume(self):
        calm, output = self.folder / "calm", self.folder / "run"
        words = self.small("sgdm", 3, output, "--auto-resume", "--checkpoint-every", "2")
        self.succeed(*self.small("sgdm", 3, calm, "--checkpoint-every", "2"))
        self.assertNotIn("continuing", self.succeed(*words).stdout)
        max(output.glob("*.ckpt")).unlink()
        self.assertIn("continuing", self.succeed(*words).stdout)
        self.assert_same_run(calm, output)
        self.succeed(*words)  # a run that is done is done
        self.assert_same_run(calm, output)
        self.refuse(*words, "--label-smoothing", "0.1", says="label_smoothing is 0.0 in this run, not 0.1")
        self.refuse(*words, "--resume", output, says="give one of them")
        for checkpoint in output.glob("*.ckpt"):  # one that was killed before its first
            checkpoint.unlink()
        self.succeed(*words)
        self.assert_same_run(calm, output)

    def damage_newest(self, damage):
        """The calm run is the same for every kind of damage."""
        calm, hurt = self.root / "undamaged", self.folder / "hurt"
        if not calm.exists():
            self.succeed(*self.small("sgd-ph", 3, calm))
        shutil.copytree(calm, hurt)
        newest = max(hurt.glob("*.ckpt"))
        damage(newest)
        done = self.succeed("train", "--resume", hurt)
        self.assertIn("warning", done.stderr)
        self.assertIn(str(newest), done.stderr)
        self.assertIn("after step 16", done.stdout)
        self.assert_same_run(calm, hurt)

    @support.slow
    def test_a_truncated_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        self.damage_newest(lambda path: os.truncate(path, path.stat().st_size // 2))

    def test_a_flipped_bit_in_the_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        def flip(path):
            content = bytearray(path.read_bytes())
            content[len(content) * 3 // 4] ^= 4
            path.write_bytes(content)

        self.damage_newest(flip)

    @support.slow
    def test_an_empty_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        self.damage_newest(lambda path: os.truncate(path, 0))

    @support.slow
    def test_first_bytes_that_are_no_checkpoints_are_noticed_and_the_one_before_it_used(self):
        for damage in (lambda size: bytes(size), lambda size: random.Random(1).randbytes(size)):
            with self.subTest():
                self.damage_newest(lambda path: path.write_bytes(damage(path.stat().st_size)))
                self.folder = Path(tempfile.mkdtemp(dir=self.root))

    @support.slow
    def test_a_finished_run_stays_as_it_is(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, run, "--val-split", "64", "--model-ema"))
        def state():
            return {p.name: (p.read_bytes(), p.stat().st_mtime_ns, p.stat().st_ino) for p in run.iterdir()}

        before = state()
        for words in (["--resume", run], ["--resume", run, "--threads", "2"], ["--auto-resume", "--output-dir", run]):
            shown = self.succeed("train", *words, *([] if "--resume" in words else self.small("sgdm", 2, None, "--val-split", "64", "--model-ema")[1:])).stdout
            self.assertIn("was finished before", shown)
            self.assertRegex(shown, r"finished: test accuracy .* [0-9]\.[0-9] s of training")
            self.assertEqual(before, state())
        for name in ("model.pt", "ema.pt"):
            (run / name).unlink()
        self.succeed("train", "--resume", run)
        self.assertEqual({n: s[0] for n, s in before.items()}, {n: s[0] for n, s in state().items()})

    def kill_at_renames(self, chosen):
        """A run that is killed as it puts a file in place, the first or the second and so on."""
        calm, wild = self.folder / "calm", self.folder / "wild"
        words = self.small("sgdm", 2, None, "--val-split", "64")
        self.succeed(*words, "--output-dir", calm, env=support.with_faults(calm, self.folder / "count"))
        for at in chosen(support.calls_in(self.folder / "count")["rename"]):
            shutil.rmtree(wild, ignore_errors=True)
            env = support.with_faults(wild, self.folder / "count", call="rename", at=at, error="kill")
            self.assertEqual(self.run_sgdph(*words, "--output-dir", wild, env=env).returncode, -9)
            if list(wild.glob("*.ckpt")):
                done = self.succeed("eval", wild, "--weights", "best", "--json")
                self.assertGreater(json.loads(done.stdout)["epoch"], 0)
            begun = (wild / "settings.toml").exists()
            self.succeed(*(["train", "--resume", wild] if begun else [*words, "--output-dir", wild]))
            self.assert_same_run(calm, wild)
            self.assertFalse((wild / "best-next.pt").exists())

    @support.slow
    def test_best_weights_are_those_of_the_best_epoch_if_the_run_is_killed_beside_their_checkpoint(self):
        self.kill_at_renames(lambda _: (4, 5))  # settings, log, weights to be the best, checkpoint, best weights

    @support.slow
    def test_best_weights_are_those_of_the_best_epoch_whenever_the_run_is_killed(self):
        self.kill_at_renames(lambda renames: range(1, renames + 1))

    @support.slow
    def test_best_weights_that_are_gone_are_spoken_of(self):
        run = self.folder / "run"
        spoiled = ["--lr-scheduler", "multistep", "--lr-milestones", "2", "--lr-gamma", "300"]
        self.succeed(*self.small("sgdm", 3, run, "--val-split", "64", *spoiled))
        best = support.records(run)[-1]["best_epoch"]
        self.assertLess(best, 3)
        self.assertIn(f"best.pt, epoch {best}, on", self.succeed("eval", run, "--weights", "best").stdout)
        other = (run / "model.pt").read_bytes()
        (run / "best.pt").unlink()
        self.refuse("eval", run, "--weights", "best", says=f"epoch {best} is its best, and best.pt is gone")
        self.refuse("train", "--resume", run, says=["no epoch is left",
                    f"best.pt is gone: the weights of epoch {best}, the best by validation so far, are lost"])
        (run / "best.pt").write_bytes(other)
        self.refuse("eval", run, "--weights", "best", says=f"best.pt is of another epoch than {best}")
        done = self.succeed("train", "--resume", run, "--epochs", "4")
        self.assertIn("warning: ", done.stderr)
        self.assertIn("the best of the epochs to come is kept", done.stderr)
        self.assertEqual(support.records(run)[-1]["best_epoch"], 4)
        self.assertIn("epoch 4, on", self.succeed("eval", run, "--weights", "best").stdout)

    @support.slow
    def test_best_weights_of_the_last_epoch_are_written_again_from_the_checkpoint(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run, "--val-split", "64"))
        best = (run / "best.pt").read_bytes()
        (run / "best.pt").unlink()
        self.succeed("train", "--resume", run)
        self.assertEqual((run / "best.pt").read_bytes(), best)

    def test_what_differs_when_a_run_is_continued_is_said_as_it_is(self):
        run = self.folder / "a run"
        self.succeed(*self.small("sgdm", 1, run, "--model-ema", "--model-ema-steps", "2"))
        self.refuse("train", "--resume", run, "--no-model-ema", says="model_ema is true in this run, not false")
        self.refuse("train", "--resume", run, "--norm-weight-decay", "0", says="norm_weight_decay is not set in this run, not 0.0")

    def test_a_full_disk_loses_neither_the_previous_checkpoint_nor_the_log(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True).returncode != 0:
            support.skip("mounting a small disk needs root")
        try:
            output, calm = disk / "run", self.folder / "calm"
            self.succeed(*self.small("sgdm", 6, calm))
            self.succeed(*self.small("sgdm", 2, output))
            kept = {p: p.read_bytes() for p in output.glob("*.ckpt")}
            before = support.figures(output)
            space = os.statvfs(disk)
            (disk / "filler").write_bytes(bytes(space.f_bavail * space.f_bsize - 24 * 1024))
            self.assertGreater(min(map(len, kept.values())), 24 * 1024)
            done = self.run_sgdph("train", "--resume", output, "--epochs", 6)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("No space left on device", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertEqual(kept, {p: p.read_bytes() for p in output.glob("checkpoint*")})
            self.assertEqual(support.figures(output)[1:3], before[1:3])
            self.assertEqual(list(output.glob("*.new")), [])
            (disk / "filler").unlink()
            self.succeed("train", "--resume", output)
            self.assert_same_run(calm, output)
        finally:
            subprocess.run(["umount", disk])

    def test_a_loss_that_becomes_nan_stops_the_run_and_names_step_rate_and_last_good_checkpoint(self):
        output = self.folder / "run"
        jump = ["--lr-scheduler", "multistep", "--lr-milestones", "2", "--lr-gamma", "1e36"]
        done = self.run_sgdph(*self.small("sgdm", 5, output, "--norm", "none", "--lr", "0.01", *jump))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        # The rate jumps after 16 steps, so step 17 spoils the weights and step 18 sees it.
        self.assertIn("at step 18 (epoch 3), learning rate 1e+34; ", done.stderr)
        good = output / "checkpoint-000000016.ckpt"
        self.assertIn(f"last good checkpoint: {good};", done.stderr)
        self.assertEqual(support.records(output)[-1]["status"], "diverged")
        self.succeed("eval", good)

    @support.slow
    def test_a_run_goes_on_without_the_weights_it_started_from(self):
        one, two = self.folder / "one", self.folder / "two"
        self.succeed(*self.small("sgdm", 1, one))
        self.succeed(*self.small("sgdm", 1, two, "--init", one / "model.pt"))
        (one / "model.pt").unlink()
        self.succeed("train", "--resume", two, "--epochs", 2, cwd="/")

    @support.slow
    def test_passed_over_batches_of_damaged_images_do_not_shift_a_continued_run(self):
        images = self.folder / "images"
        support.write_samples("images", images)
        for victim in sorted((images / "train").glob("*/*"))[::3]:
            victim.write_bytes(b"no image")
        calm, hurt = self.folder / "calm", self.folder / "hurt"
        words = ["train", "--dataset", "imagenet", "--data-path", images, "--model", "resnet18", "--width", "0.05", "-b", "1",
                 "--norm", "layer", "--opt", "sgdm", "--epochs", "1", "--skip-damaged", "--checkpoint-every", "1",
                 "--threads", "1", "--keep-checkpoints", "100"]
        self.succeed(*words, "--output-dir", calm)
        for kept in (1, 4, 7):
            self.succeed(*words, "--output-dir", hurt)
            for checkpoint in sorted(hurt.glob("*.ckpt"))[kept:]:
                checkpoint.unlink()
            self.succeed("train", "--resume", hurt)
            self.assert_same_run(calm, hurt)
            shutil.rmtree(hurt)

    def test_accumulation_continues_in_the_middle_of_an_epoch(self):
        calm, hurt = self.folder / "calm", self.folder / "hurt"
        words = ["--accumulate", 3, "--checkpoint-every", 1, "--keep-checkpoints", 9]
        self.succeed(*self.small("sgd-ph", 2, calm, *words))
        self.succeed(*self.small("sgd-ph", 2, hurt, *words))
        for checkpoint in sorted(hurt.glob("*.ckpt"))[2:]:
            checkpoint.unlink()
        self.succeed("train", "--resume", hurt)
        self.assert_same_run(calm, hurt)

    @support.slow
    def test_curvature_from_part_of_the_batch_continues_with_the_same_bits(self):
        for opt in ("sgd-ph", "adahessian"):
            calm, hurt = self.folder / f"{opt}-calm", self.folder / f"{opt}-hurt"
            words = ["--curvature-batch", "1/4", "--accumulate", 2, "--checkpoint-every", 1, "--keep-checkpoints", 9]
            self.succeed(*self.small(opt, 2, calm, *words))
            self.succeed(*self.small(opt, 2, hurt, *words))
            for checkpoint in sorted(hurt.glob("*.ckpt"))[2:]:
                checkpoint.unlink()
            self.succeed("train", "--resume", hurt)
            self.assert_same_run(calm, hurt)

    @support.slow
    def test_a_run_whose_checkpoints_are_all_damaged_is_not_started_anew(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output))
        for checkpoint in output.glob("*.ckpt"):
            os.truncate(checkpoint, 100)
        for _ in range(2):
            done = self.run_sgdph("train", "--resume", output)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no whole checkpoint", done.stderr)
        self.assertEqual(support.records(output)[-1]["status"], "finished")

    def test_two_processes_do_not_work_on_one_run(self):
        output = self.folder / "run"
        words = self.small("sgdm", 500, output)
        child = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while not (output / "log.jsonl").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            done = self.run_sgdph("train", "--resume", output)
            self.assertEqual(done.returncode, 2)
            self.assertIn("another process is working on", done.stderr)
        finally:
            child.kill()
            child.wait()


if __name__ == "__main__":
    support.main()
