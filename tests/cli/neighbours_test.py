"""What goes on around a run: other processes on its folder, signals, listeners that leave, a disk that is full."""

import fcntl
import json
import os
import pty
import re
import shutil
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
        # Neither was told of the other: they count who is there.
        ends = [support.records(run.parent)[-1]["cost"]["side_by_side"] for run in (self.folder / "cmp").glob("*/log.jsonl")]
        self.assertEqual(max(ends), 2, ends)
        self.assertRegex((self.folder / "cmp" / "summary.txt").read_text(), "time, (up to )?2 at once")

    @support.slow
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

    @support.slow
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

    @support.slow
    def test_jobs_get_their_share_of_threads(self):
        words = self.words("--jobs", "2")
        at = words.index("--threads")
        del words[at:at + 2]
        errors = self.succeed(*words).stderr
        self.assertTrue(errors.startswith("[4/4] SGD-PH, seed 1\n"), "what takes longest is not left for the end: " + errors)
        share = max(1, min(len(os.sched_getaffinity(0)) // 2, int(os.environ.get("OMP_NUM_THREADS", 4096))))
        for run in (self.folder / "cmp").glob("*/log.jsonl"):
            self.assertEqual(support.records(run.parent)[0]["threads"], share)

    def test_too_many_or_no_jobs_are_refused(self):
        self.refuse(*self.words("--jobs", "0"), says="--jobs")


class TwoExperimentsOnOneFolder(support.CommandTest):
    def words(self, output, *extra):
        return ["reproduce", "mine.toml", "--data-path", self.data, "--threads", "1", "--output-dir", output, "--format", "json", *extra]

    def start(self, *words):
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def runs_begun(self, errors):
        """The names of the runs that a process trained itself."""
        return {line for line in errors.splitlines() if line.startswith("[") and ": " not in line}

    def share_the_work(self, count, epochs):
        out = self.folder / "out"
        first = self.start(*self.words("out"))
        while not list(out.glob("*.claim")) and first.poll() is None:
            time.sleep(0.01)
        second = self.start(*self.words("out"))
        outs = [child.communicate(timeout=300) for child in (first, second)]
        for child, (text, errors) in zip((first, second), outs):
            self.assertEqual(child.returncode, 0, errors)
            cells = json.loads(text)["cells"]
            self.assertEqual([cell["ours"]["n"] for cell in cells], [1] * count, "the whole table")
        begun = [self.runs_begun(errors) for _, errors in outs]
        self.assertEqual(begun[0] & begun[1], set(), "nothing is trained twice")
        self.assertEqual(len(begun[0] | begun[1]), count)
        self.assertTrue(all(begun), "each has its share")
        self.assertEqual([p for p in out.iterdir() if p.suffix in (".claim", ".toml", ".new")], [])
        runs = [log.parent for log in out.glob("*/log.jsonl")]
        self.assertEqual(len(runs), count)
        for run in runs:
            self.assertEqual([r["type"] for r in support.records(run)].count("epoch"), epochs, run)

    def test_two_share_the_work_and_both_have_the_whole_table(self):
        # Long enough for the second to come while the first is at its first run.
        (self.folder / "mine.toml").write_text(support.experiment(width=0.25, epochs=8))
        self.share_the_work(2, epochs=8)

    @support.slow
    def test_two_share_a_grid_and_end_with_what_one_gives(self):
        (self.folder / "mine.toml").write_text(support.experiment(widths=[0.25, 0.5]))
        self.share_the_work(4, epochs=2)
        self.succeed(*self.words("calm"))
        self.assert_same_records("calm", "out")

    def records(self, output):
        """By run what its log says, but for times and how many trained at once, and its weights."""
        runs = {}
        for log in (self.folder / output).glob("*/log.jsonl"):
            figures = support.figures(log.parent)
            del figures[0]["settings"]["side_by_side"]
            runs[log.parent.name] = figures, (log.parent / "model.pt").read_bytes()
        return runs

    def assert_same_records(self, one, other):
        self.assertEqual(*[json.loads((self.folder / output / "mine.json").read_text()) for output in (one, other)])
        self.assertEqual(*map(self.records, (one, other)))

    def test_jobs_give_the_records_of_one_after_the_other(self):
        (self.folder / "mine.toml").write_text(support.experiment(width=0.25))
        self.succeed(*self.words("one", "--jobs", "1"))
        self.succeed(*self.words("two", "--jobs", "2"))
        sides = [{support.records(log.parent)[-1]["cost"]["side_by_side"] for log in (self.folder / output).glob("*/log.jsonl")}
                 for output in ("one", "two")]
        self.assertEqual(sides, [{1}, {2}])
        self.assert_same_records("one", "two")


class AComparisonThatIsDone(support.CommandTest):
    """One comparison for all; each test has a copy of its folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.done = cls.root / "done"
        subprocess.run([support.SGDPH, *map(str, cls.words(cls.done))], check=True, capture_output=True, cwd=cls.root)

    @classmethod
    def words(cls, folder, *extra):
        return ["compare", "--data-path", cls.data, "--width", "0.25", "-b", "64", "--epochs", "1", "--opts", "sgdm,adam",
                "--output-dir", folder, "--format", "json", *extra]

    def setUp(self):
        super().setUp()
        self.output = self.folder / "cmp"
        shutil.copytree(self.done, self.output)

    def start(self, *words):
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    @support.slow
    def test_several_at_once_all_end_well_and_leave_nothing_behind(self):
        (self.output / "summary.txt.1-1.new").write_text("left by one that was killed")
        before = sorted(p.name for p in self.done.iterdir())
        for _ in range(4):
            for child in [self.start(*self.words(self.output)) for _ in range(3)]:
                out, errors = child.communicate(timeout=120)
                self.assertEqual(child.returncode, 0, errors)
                self.assertEqual(len(json.loads(out)), 2)
        self.assertEqual(before, sorted(p.name for p in self.output.iterdir()))
        pages = [self.start("report", self.output) for _ in range(3)]
        for child in pages:
            _, errors = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, errors)
        self.assertEqual(list(self.output.glob("*.new")), [])

    @support.slow
    def test_another_number_of_jobs_or_cores_is_no_other_comparison(self):
        threads = support.records(self.done / "adam-seed1")[0]["threads"]
        for extra in (["--jobs", "2"], ["--jobs", "3"], []):
            done = self.succeed(*self.words(self.output, *extra))
            self.assertIn("done before", done.stderr)
        shutil.rmtree(self.output / "adam-seed1")
        # The stored number of another machine; here it would be another.
        settings = self.output / "sgdm-seed1" / "settings.toml"
        settings.write_text(settings.read_text().replace(f"threads = {threads}\n", "threads = 7\n"))
        rows = json.loads(self.succeed(*self.words(self.output, "--jobs", "2")).stdout)
        self.assertEqual([row["side_by_side"] for row in rows], [1, 2])
        self.assertIn("time, up to 2 at once", (self.output / "summary.txt").read_text())
        self.assertIn(" s, 2 at once", (self.output / "summary.txt").read_text())
        self.refuse(*self.words(self.output, "--threads", "3"), says="threads is 7 in this run")

    @support.slow
    def test_the_stars_legend_is_there_if_there_is_a_star(self):
        words = self.words(self.output)[:-1] + ["text"]
        shown = self.succeed(*words).stdout
        self.assertIn(" *", shown)
        self.assertIn("* highest mean after the last epoch, or within the noise of it; also in", shown)
        words[words.index("sgdm,adam")] = "sgdm"
        shown = self.succeed(*words).stdout
        self.assertNotIn("*", shown)
        self.assertIn("also in", shown)

    def test_a_run_that_cannot_be_is_one_that_failed_and_the_others_go_on(self):
        for run in ("sgdm-seed1", "adam-seed1"):
            shutil.rmtree(self.output / run)
        (self.output / "sgdm-seed1").write_text("a file where a folder should be")
        done = self.run_sgdph(*self.words(self.output))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\[1/2\] SGDM, seed 1: failed: .*sgdm-seed1 is not a writable folder")
        self.assertEqual([row["top1"]["n"] for row in json.loads(done.stdout)], [0, 1])
        self.assertIn("without a finished run: SGDM", (self.output / "summary.txt").read_text())

    @support.slow
    def test_a_run_that_is_given_up_can_be_killed_at_that(self):
        images = self.folder / "images"
        support.write_samples("images", images)
        victim = sorted((images / "train").glob("*/*"))[0]
        victim.write_bytes(victim.read_bytes()[:100])
        output = self.folder / "broken"
        words = ["compare", "--dataset", "imagenet", "--data-path", images, "--model", "resnet18", "--width", "0.05", "-b", "4",
                 "--epochs", "1", "--opts", "sgdm", "--output-dir", output]
        run = output / "sgdm-seed1"
        self.assertIn(f"failed: {victim}", self.run_sgdph(*words, env=support.with_faults(run, self.folder / "count")).stderr)
        self.assertFalse(run.exists())
        for at in range(1, support.calls_in(self.folder / "count")["unlink"] + 1):
            env = support.with_faults(run, self.folder / "count", call="unlink", at=at, error="kill")
            self.assertIn("failed: ended by signal 9", self.run_sgdph(*words, env=env).stderr, at)
            self.assertIn(f"failed: {victim}", self.run_sgdph(*words).stderr, at)
            shutil.rmtree(run, ignore_errors=True)

    @support.slow
    def test_a_run_whose_checkpoints_are_garbage_is_one_that_failed(self):
        run = self.output / "sgdm-seed1"
        lines = (run / "log.jsonl").read_text().splitlines()
        (run / "log.jsonl").write_text(lines[0] + "\n")
        for checkpoint in run.glob("*.ckpt"):
            checkpoint.write_bytes(b"garbage" * 100)
        (self.output / "summary.txt").unlink()
        done = self.run_sgdph(*self.words(self.output))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\[1/2\] SGDM, seed 1: warning: .*first bytes are damaged")
        self.assertRegex(done.stderr, r"\[1/2\] SGDM, seed 1: failed: .*no whole checkpoint")
        self.assertTrue((self.output / "summary.txt").exists())

    @support.slow
    def test_what_a_run_warns_of_is_passed_on(self):
        shutil.rmtree(self.output)
        words = self.words(self.output, "--epochs", "2")
        self.succeed(*words)
        run = self.output / "sgdm-seed1"
        lines = (run / "log.jsonl").read_text().splitlines()
        (run / "log.jsonl").write_text("\n".join(lines[:2]) + "\n")  # unfinished
        newest = max(run.glob("*.ckpt"))
        os.truncate(newest, 100)
        done = self.succeed(*words)
        self.assertRegex(done.stderr, rf"\[1/2\] SGDM, seed 1: warning: {newest}: .*; trying the one before it\n")

    @support.slow
    def test_all_runs_diverged_is_no_success(self):
        shutil.rmtree(self.output)
        words = self.words(self.output, "--norm", "none", "--lr", "1e30")
        for _ in range(2):
            done = self.run_sgdph(*words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual([row["diverged"] for row in json.loads(done.stdout)], [1, 1])


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

    @support.slow
    def test_threads_that_have_nothing_to_do_soon_leave_the_core_to_others(self):
        words = self.small("sgdm", 1, None, "--dry-run")
        self.assertEqual(self.waits(*words), "1000")
        self.assertEqual(self.waits(*words, GOMP_SPINCOUNT="77"), "77", "what the user chose stays")
        self.assertNotEqual(self.waits(*words, OMP_WAIT_POLICY="active"), "1000")
        self.assertEqual(self.waits("scale", "--model", "resnet8", "--step", "10"), "1000")
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

    @support.slow
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

    @support.slow
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
        time.sleep(0.001)
        child.send_signal(signal.SIGHUP)  # and so does the shell, to all that it has started
        self.assertEqual(child.wait(timeout=60), 130)
        self.succeed("train", "--resume", self.output, "--test-only")

    def test_a_full_disk_under_standard_output_is_said(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.command("list", "models"), stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "sgdph: cannot write to standard output: No space left on device\n")

    def test_a_run_whose_lines_find_the_disk_full_comes_to_its_end_and_says_so(self):
        with open("/dev/full", "w") as full:
            child = self.train(stdout=full, stderr=subprocess.PIPE)
            _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 1)
        self.assertEqual(errors, "sgdph: cannot write to standard output: No space left on device\n")
        self.assertEqual(support.records(self.output)[-1]["status"], "finished")
        self.assertTrue((self.output / "model.pt").exists())


if __name__ == "__main__":
    support.main()
