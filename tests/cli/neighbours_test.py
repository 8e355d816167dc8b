"""What goes on around a run: other processes on its folder, signals, listeners that leave, a disk that is full."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import termios
import time
import unittest

import support


class TwoOnOneFolder(support.CommandTest):
    def words(self, *extra):
        return ["compare", "--data-path", self.data, "--width", "0.5", "-b", "32", "--epochs", "2", "--threads", "1",
                "--opts", "sgdm,adam,lion,sgd-ph", "--output-dir", self.folder / "cmp", "--format", "json", *extra]

    def start(self, *words):
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def runs_begun(self, errors):
        """The names of the runs that a process trained itself."""
        return {line for line in errors.splitlines() if line.startswith("[") and ": " not in line}

    def assert_whole(self, rows):
        self.assertEqual([row["optimizer"] for row in rows], ["sgdm", "adam", "lion", "sgd-ph"])
        self.assertTrue(all(row["seconds"] > 0 for row in rows), rows)

    def test_two_comparisons_share_the_work_and_both_have_the_whole_table(self):
        first = self.start(*self.words())
        while not list((self.folder / "cmp").glob("*.claim")) and first.poll() is None:
            time.sleep(0.01)
        second = self.start(*self.words())
        outs = [child.communicate(timeout=300) for child in (first, second)]
        for child, (out, errors) in zip((first, second), outs):
            self.assertEqual(child.returncode, 0, errors)
            self.assert_whole(json.loads(out))
        begun = [self.runs_begun(errors) for _, errors in outs]
        self.assertEqual(begun[0] & begun[1], set(), "nothing is trained twice")
        self.assertEqual(len(begun[0] | begun[1]), 4)
        self.assertEqual(list((self.folder / "cmp").glob("*.claim")) + list((self.folder / "cmp").glob("*.toml")), [])
        for run in (self.folder / "cmp").glob("*/log.jsonl"):
            self.assertEqual([r["type"] for r in support.records(run.parent)].count("epoch"), 2, run)

    def test_what_a_killed_one_left_is_taken_over(self):
        first = self.start(*self.words("--checkpoint-every", "1"))
        while not list((self.folder / "cmp").glob("*/*.ckpt")) and first.poll() is None:
            time.sleep(0.01)
        second = self.start(*self.words("--checkpoint-every", "1"))
        first.kill()
        first.communicate()
        out, errors = second.communicate(timeout=300)
        self.assertEqual(second.returncode, 0, errors)
        self.assert_whole(json.loads(out))

    def test_jobs_train_side_by_side_with_the_bits_of_one_after_the_other_and_say_so_with_their_times(self):
        self.succeed(*self.words())
        words = [str(word).replace("/cmp", "/jobs") for word in self.words("--jobs", "3")]
        rows = json.loads(self.succeed(*words).stdout)
        self.assert_whole(rows)
        self.assertEqual({row["side_by_side"] for row in rows}, {3})
        self.assertIn("time, 3 at once", (self.folder / "jobs" / "summary.txt").read_text())
        for run in (self.folder / "cmp").glob("*/model.pt"):
            again = self.folder / "jobs" / run.parent.name / "model.pt"
            self.assertEqual(run.read_bytes(), again.read_bytes(), run.parent.name)

    def test_jobs_get_their_share_of_threads(self):
        words = self.words("--jobs", "2")
        at = words.index("--threads")
        del words[at:at + 2]
        self.succeed(*words)
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        for run in (self.folder / "cmp").glob("*/log.jsonl"):
            self.assertEqual(support.records(run.parent)[0]["threads"], share)

    def test_too_many_or_no_jobs_are_refused(self):
        self.refuse(*self.words("--jobs", "0"), says="--jobs")


class Waiting(support.CommandTest):
    def waits(self, *words, **variables):
        """What libgomp says it goes by."""
        env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        done = self.run_sgdph(*words, env={**env, "OMP_DISPLAY_ENV": "verbose", **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
        if not lines:
            self.skipTest("this LibTorch's OpenMP is not libgomp")
        return re.search("'(.*)'", lines[0]).group(1)

    def test_threads_that_have_nothing_to_do_soon_leave_the_core_to_others(self):
        words = self.small("sgdm", 1, None, "--dry-run")
        self.assertEqual(self.waits(*words), "1000")
        self.assertEqual(self.waits(*words, GOMP_SPINCOUNT="77"), "77", "what the user chose stays")
        self.assertNotEqual(self.waits(*words, OMP_WAIT_POLICY="active"), "1000")
        self.assertNotEqual(self.waits("list", "models"), "1000", "what computes nothing is started once")


class Listeners(support.CommandTest):
    def train(self, *extra, **options):
        self.output = self.folder / "run"
        words = self.command(*self.small("sgdm", 6, self.output, "--checkpoint-every", "2", *extra))
        return subprocess.Popen(words, text=True, cwd=self.folder, **options)

    def wait_for_checkpoint(self, child):
        while not list(self.output.glob("*.ckpt")) and child.poll() is None:
            time.sleep(0.005)

    def test_a_closed_pipe_does_not_end_the_run(self):
        child = self.train("--progress", "lines", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(timeout=120), 0)
        self.assertTrue((self.output / "model.pt").exists())

    def test_what_is_said_to_closed_files_goes_into_no_file_of_the_run(self):
        for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed=closed):
                run = self.folder / f"run {len(closed)}"
                words = self.command(*self.small("sgdm", 2, run, "--progress", "lines", "--checkpoint-every", "1"))
                done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words])
                self.assertEqual(done.returncode, 0)
                self.assertEqual((run / ".lock").read_bytes(), b"")
                self.assertEqual([r["type"] for r in support.records(run)], ["header", "epoch", "epoch", "end"])
                self.succeed("train", "--resume", run, "--epochs", "3")

    def test_a_limit_on_the_size_of_files_is_told_like_a_full_disk(self):
        run = self.folder / "run"
        words = self.command(*self.small("sgdm", 1, run))
        done = subprocess.run(["bash", "-c", 'ulimit -f 40; "$@"', "sh", *words], stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^sgdph: cannot write .*checkpoint-000000008.ckpt: File too large; what was there before is unchanged\n$")

    def test_under_nohup_the_terminals_end_is_nothing(self):
        child = self.train(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_checkpoint(child)
        child.send_signal(signal.SIGHUP)
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 0, errors)
        self.assertTrue((self.output / "model.pt").exists())

    def test_a_terminal_that_goes_away_leaves_a_checkpoint_to_continue_from(self):
        parent, terminal = pty.openpty()
        child = self.train("--epochs", "200", stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(terminal)
        self.wait_for_checkpoint(child)
        os.close(parent)  # the kernel sends SIGHUP, and writing fails with EIO
        self.assertEqual(child.wait(timeout=60), 130)
        self.succeed("train", "--resume", self.output, "--test-only")

    def test_a_full_disk_under_standard_output_is_said(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.command("list", "models"), stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "sgdph: cannot write to standard output: No space left on device\n")


if __name__ == "__main__":
    unittest.main()
