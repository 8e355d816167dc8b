"""Runs that are stopped in every way and continued end with the same bits as undisturbed ones."""

import os
import random
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support


class Resume(support.CommandTest):
    def kill_and_resume(self, opt, kills=20):
        """Kills the run at random moments, `kills` times, then lets it finish. Returns its folder."""
        calm, wild = self.folder / "calm", self.folder / "wild"
        options = ["--checkpoint-every", 1, "--seed", 3]
        started = time.monotonic()
        self.succeed(*self.small(opt, 12, calm, *options))
        whole = time.monotonic() - started
        rng = random.Random(opt)
        steps, half_written = [], 0
        # Each life is long enough to start, and too short for twenty of them to finish the run.
        startup = self.startup_seconds(opt)
        for _ in range(kills):
            words = ["train", "--resume", wild] if (wild / "settings.toml").exists() else self.small(opt, 12, wild, *options)
            child = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(startup * rng.uniform(0.5, 1.0) + rng.uniform(0, whole - startup) / (kills + 2))
            self.assertIsNone(child.poll(), "the run ended before it was killed")
            child.kill()
            child.wait()
            half_written += len(list(wild.glob("*.new")))
            steps.append(max([int(p.stem.split("-")[1]) for p in wild.glob("*.ckpt")], default=0))
        self.assertGreater(steps[-1], steps[0], "no life made progress")
        print(f"{opt}: killed at steps {steps}, {half_written} half-written files left by kills", flush=True)
        self.succeed("train", "--resume", wild)
        self.assert_same_run(calm, wild)
        self.assertEqual(list(wild.glob("*.new")), [])

    def startup_seconds(self, opt):
        started = time.monotonic()
        self.succeed(*self.small(opt, 1, None, "--dry-run"))
        return time.monotonic() - started

    def test_a_run_of_sgdm_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgdm")

    def test_a_run_of_sgd_ph_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("sgd-ph")

    def test_a_run_of_adahessian_killed_twenty_times_ends_with_the_same_bits(self):
        self.kill_and_resume("adahessian")

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
        output = self.folder / "run"
        errors = self.interrupted_run(output)
        self.assertIn(f"continue with: sgdph train --resume {output}", errors)
        newest = max(output.glob("*.ckpt"))
        self.assertIn(str(newest), errors)
        step = int(newest.stem.split("-")[1])
        done = self.run_sgdph("eval", newest)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(step, 0)

    def damage_newest(self, damage):
        calm, hurt = self.folder / "calm", self.folder / "hurt"
        self.succeed(*self.small("sgd-ph", 3, calm))
        self.succeed(*self.small("sgd-ph", 3, hurt))
        newest = max(hurt.glob("*.ckpt"))
        damage(newest)
        done = self.succeed("train", "--resume", hurt)
        self.assertIn("warning", done.stderr)
        self.assertIn(str(newest), done.stderr)
        self.assertIn("after step 16", done.stdout)
        self.assert_same_run(calm, hurt)

    def test_a_truncated_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        self.damage_newest(lambda path: os.truncate(path, path.stat().st_size // 2))

    def test_a_flipped_bit_in_the_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        def flip(path):
            content = bytearray(path.read_bytes())
            content[len(content) * 3 // 4] ^= 4
            path.write_bytes(content)

        self.damage_newest(flip)

    def test_an_empty_newest_checkpoint_is_noticed_and_the_one_before_it_used(self):
        self.damage_newest(lambda path: os.truncate(path, 0))

    def test_a_full_disk_loses_neither_the_previous_checkpoint_nor_the_log(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=450k", "tmpfs", disk], capture_output=True).returncode != 0:
            self.skipTest("mounting a small tmpfs needs root")
        try:
            output, calm = disk / "run", self.folder / "calm"
            options = ["--checkpoint-every", 1, "--seed", 3]
            self.succeed(*self.small("sgdm", 40, calm, *options))
            done = self.run_sgdph(*self.small("sgdm", 40, output, *options))
            # The log and what is beside it grow until the disk is full.
            filler = disk / "filler"
            if done.returncode == 0:
                self.fail("the disk was not full")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("No space left on device", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertEqual(list(output.glob("*.new")), [])
            checkpoints = sorted(output.glob("*.ckpt"))
            self.assertTrue(checkpoints)
            for record in support.records(output):
                self.assertIn("type", record)
            for checkpoint in checkpoints:
                self.succeed("eval", checkpoint, "--data-path", self.data)
            filler.unlink(missing_ok=True)
            subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
            self.succeed("train", "--resume", output)
            self.assert_same_run(calm, output)
        finally:
            subprocess.run(["umount", disk])

    def test_a_loss_that_becomes_nan_stops_the_run_and_names_step_rate_and_last_good_checkpoint(self):
        output = self.folder / "run"
        done = self.run_sgdph(*self.small("sgdm", 50, output, "--lr", "1e18", "--lr-warmup-epochs", "49"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"at step \d+ \(epoch \d+\), learning rate [\d.e+]+; last good checkpoint: \S+")
        self.assertEqual(support.records(output)[-1]["status"], "diverged")
        last = support.records(output)[-1]["message"].split("last good checkpoint: ")[1].split(";")[0]
        if last != "none yet":
            self.succeed("eval", last, "--data-path", self.data)

    def test_more_epochs_may_be_asked_for_and_other_settings_may_not(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, output))
        self.refuse("train", "--resume", output, "--lr", "0.5", says=["lr is 0.1", "0.5"])
        self.refuse("train", "--resume", output, "--model", "resnet20", says=["model is", "resnet20"])
        self.succeed("train", "--resume", output, "--epochs", "2")
        self.assertEqual(len([r for r in support.records(output) if r["type"] == "epoch"]), 2)

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
    unittest.main(verbosity=2)
