"""Calls that fail, disks that are full, folders that are somebody else's, links, odd names, clocks that jump: the old state
is there, the message names the file, and a second start goes on."""

import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kills_test
import support
from kills_test import AutoResume, Disk, SmallReproduce, Subject, Train

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR, "short": "short"}
# What may fail without a word, whatever the error; every other call must end the command with the file's name.
MAY_BE_IGNORED = {
    "close": "what was written is on the disk before",
    "unlink": "what is left of a temporary file goes the next time",
    "truncate": "the words in a lock, which only count who is there",
}
OLD = b"what was here before\n"


def shape(content, folder):
    """A text without what differs from folder to folder and from run to run: paths, figures and the room for them."""
    text = content.decode(errors="replace").replace(str(folder), "")
    return re.sub(r"[\s|-]+", " ", re.sub(r"[0-9][0-9.e+-]*", "0", text))


def pattern_of(path):
    """Names of event files have the time, and a number for those of the same second."""
    return re.sub(r"[0-9]{10}\\\.[0-9]{4}", r"[0-9]{10}\\.[0-9]{4}", re.escape(str(path)))


class Replaces:
    """A subject that puts files in the place of old ones, `replaced`; each is there at any time, the old or the new, whole."""

    def check_replaced(self, folder, failed, where):
        for name in self.replaced(self.calm):
            content = (folder / name).read_bytes()
            if not (failed and self.may_be_there(content)):
                self.test.assertEqual(shape(content, folder), shape((self.calm / name).read_bytes(), self.calm), f"{where}: {name}")

    def may_be_there(self, content):
        """After a failure, in place of what is new."""
        return content == OLD

    def check(self, folder, tidy=True):
        super().check(folder, tidy)
        self.check_replaced(folder, False, self.name)


class Continue(Train):
    """A run that has an epoch behind it."""

    def words(self, folder):
        return ["train", "--resume", folder / "run", "--epochs", "2"]

    def prepare(self, folder):
        self.test.succeed(*self.test.small("sgdm", 1, folder / "run", "--tensorboard"))

    def kept(self, folder):
        return [folder / "run" / "checkpoint-000000008.ckpt"]


class Fetch(kills_test.Fetch):
    in_order = False  # as many writes as pieces come


class Again(Fetch):
    """A download that is there and only wants unpacking."""

    in_order = True

    def words(self, folder):
        words = super().words(folder)
        words[words.index("any")] = "sha256:" + hashlib.sha256(self.archive()).hexdigest()
        return words

    def archive(self):
        (content,) = self.server.files.values()
        return content

    def prepare(self, folder):
        (folder / "data").mkdir()
        (folder / "data" / "cifar-100-binary.tar.gz").write_bytes(self.archive())

    def kept(self, folder):
        return [folder / "data" / "cifar-100-binary.tar.gz"]


class OldSummary(Replaces):
    def prepare(self, folder):
        (folder / "cmp").mkdir()
        (folder / "cmp" / "summary.txt").write_bytes(OLD)

    def replaced(self, folder):
        return ["cmp/summary.txt"]

    def may_be_there(self, content):
        # A summary of the runs that came to an end is whole, too.
        return super().may_be_there(content) or (content.startswith(b"optimizer") and content.endswith(b".\n"))


class Compare(OldSummary, kills_test.Compare):
    in_order = False  # two at once


class SmallCompare(OldSummary, kills_test.SmallCompare):
    pass


class Report(Replaces, Subject):
    def words(self, folder):
        return ["report", folder / "run", "--output", folder / "page" / "report.md", "--figures", folder / "page" / "figures"]

    def prepare(self, folder):
        self.test.succeed(*self.test.small("sgdm", 2, folder / "run"))
        self.test.succeed(*self.words(folder))
        for name in self.replaced(folder):
            (folder / name).write_bytes(OLD)

    def replaced(self, folder):
        return sorted(str(p.relative_to(folder)) for p in (folder / "page").rglob("*") if p.is_file())

    def check(self, folder, tidy=True):
        super().check(folder, tidy)
        names = [sorted(p.name for p in (under / "page").rglob("*")) for under in (self.calm, folder)]
        self.test.assertEqual(*names)


class EveryCallThatWrites(support.CommandTest):
    def strike(self, subject, call, at, error, place):
        """One start with one call that fails, and one without."""
        # Where calls come in any order, or their number is not that of the calm one, the name of any will do.
        named = subject.named.get(call, [])
        sure = call != "open" and getattr(subject, "in_order", True) and len(named) == subject.calls[call]
        files = [named[at - 1]] if sure else named
        where = f"{subject.name}: {call} number {at} with {error} ({files[0] if sure else 'of any file'})"
        wild = subject.home / f"wild-{place}"
        shutil.rmtree(wild, ignore_errors=True)
        shutil.copytree(subject.before, wild)
        kept = {p: p.read_bytes() for p in getattr(subject, "kept", lambda _: [])(wild)}
        count = subject.home / f"count-{place}"
        child = subject.run(wild, env=support.with_faults(wild, count, call=call, at=at, error=ERRORS[error]))
        errors = child.stderr
        struck = support.calls_in(count)[call] >= at
        must_end = struck and error in ("ENOSPC", "EIO") and call not in MAY_BE_IGNORED
        codes = (1,) if must_end else (0, 1) if struck else (0,)
        self.assertIn(child.returncode, codes, f"{where}: {errors}")
        if must_end:
            self.assertIn(os.strerror(ERRORS[error]), errors, where)
            self.assertTrue(any(re.search(pattern_of(wild / file), errors) for file in files), f"{where}: {errors}")
        if isinstance(subject, Replaces):
            subject.check_replaced(wild, child.returncode != 0, where)
        for file, content in kept.items():
            self.assertEqual(file.read_bytes(), content, where)
        if child.returncode != 0:
            said = errors.splitlines()[-1]
            self.assertTrue(said.startswith("sgdph: ") or "failed: " in errors, f"{where}: {errors}")
            self.assertIn(str(wild), errors, where)
            self.assertNotIn("internal error", errors, where)
            subject.finish(wild)
        subject.check(wild, tidy=False)
        shutil.rmtree(wild)
        return child.returncode

    @staticmethod
    def names_in(journal, folder):
        """For each kind of call the files they were for, as a message names them, in order; those of `open` in no order."""
        found = {call: [] for call in support.CALLS}
        changes = Disk(journal, folder).changes
        names = {}
        for what, inode, _, _, path, _ in reversed(changes):  # a file that was there has its name at its fsync
            if what in ("create", "fsync"):
                names[inode] = path
        for what, inode, _, _, path, to in changes:
            if what in ("create", "fsync"):
                names[inode] = path
            call = {"fsync-folder": "fsync", "create": "open"}.get(what, what)
            path = to or path or names.get(inode, "")
            found[call].append(os.path.relpath(re.sub(r"\.[0-9]+-[0-9]+\.new$", "", path) or folder, folder))
            if what == "fsync":
                found["open"].append(found["fsync"][-1])
        found["open"] += [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]  # locks get no fsync
        return found

    def strike_all(self, subject, share=0, every_error=True):
        """Of each kind of call so large a share, at least one, with every error, or with one: the next for the next kind."""
        subject.before = subject.home / "before"
        subject.before.mkdir()
        if hasattr(subject, "prepare"):
            subject.prepare(subject.before)
        shutil.copytree(subject.before, subject.calm)
        journal = subject.home / "journal"
        subject.finish(subject.calm, env=support.with_faults(subject.calm, subject.home / "count", journal=journal))
        subject.calls = calls = support.calls_in(subject.home / "count")
        subject.named = self.names_in(journal, subject.calm)
        self.assertGreater(calls["any"], 3)
        rng = random.Random(subject.name)
        plan = []
        for kind, call in enumerate(support.CALLS[:-1]):
            errors = [error for error in ERRORS if error != "short" or call == "write"]
            if not every_error:
                errors = [errors[kind % len(errors)]]
            for error in errors:
                numbers = range(1, calls[call] + 1)
                wanted = max(1, round(share * len(numbers)))
                plan += [(call, at, error) for at in rng.sample(numbers, min(len(numbers), wanted))]
        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(self.strike, subject, *one, place) for place, one in enumerate(plan)]
        wrong = [str(end.exception()) for end in ends if end.exception()]
        if wrong:
            self.fail("\n\n".join([f"{len(wrong)} of {len(plan)} calls:", *wrong]))
        codes = [end.result() for end in ends]
        print(f"{subject.name}: {len(plan)} calls of {calls['any']} failed, {codes.count(1)} ended it, "
              f"every second start went on", flush=True)

    def test_one_error_of_every_kind_of_call_of_a_run_that_is_continued(self):
        self.strike_all(Continue(self, "continue"), every_error=False)

    def test_one_error_of_every_kind_of_call_of_a_download(self):
        self.strike_all(Fetch(self, "fetch"), every_error=False)
        self.strike_all(Again(self, "again"), every_error=False)

    def test_one_error_of_every_kind_of_call_of_a_report(self):
        self.strike_all(Report(self, "report"), every_error=False)

    def test_one_error_of_every_kind_of_call_of_a_comparison(self):
        self.strike_all(SmallCompare(self, "compare"), every_error=False)

    @support.slow
    def test_a_run_that_is_continued(self):
        self.strike_all(Continue(self, "continue"))

    @support.slow
    def test_a_run_with_all_that_it_may_keep(self):
        self.strike_all(AutoResume(self, "autoresume"))

    @support.slow
    def test_a_comparison(self):
        self.strike_all(Compare(self, "compare"))

    @support.slow
    def test_a_download(self):
        self.strike_all(Fetch(self, "fetch"))
        self.strike_all(Again(self, "again"))

    @support.slow
    def test_a_report(self):
        self.strike_all(Report(self, "report"))

    @support.long
    def test_every_call_of_a_run_that_is_new(self):
        self.strike_all(Train(self, "train"), 1)

    @support.long
    def test_every_call_of_a_run_that_is_continued(self):
        self.strike_all(Continue(self, "continue"), 1)

    @support.long
    def test_every_call_of_a_run_with_all_that_it_may_keep(self):
        self.strike_all(AutoResume(self, "autoresume"), 1)

    @support.long
    def test_every_call_of_a_comparison(self):
        self.strike_all(Compare(self, "compare"), 1)

    @support.long
    def test_every_call_of_an_experiment(self):
        self.strike_all(SmallReproduce(self, "reproduce"), 1)

    @support.long
    def test_every_call_of_a_download(self):
        self.strike_all(Fetch(self, "fetch"), 1)
        self.strike_all(Again(self, "again"), 1)

    @support.long
    def test_every_call_of_a_report(self):
        self.strike_all(Report(self, "report"), 1)

    def test_a_disk_that_stays_full_is_said_with_the_room_that_is_needed(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run))
        before = support.figures(run)
        env = support.with_faults(run, self.folder / "count", call="write", at=3, error=errno.ENOSPC, lasting=1)
        done = self.run_sgdph("train", "--resume", run, "--epochs", "2", env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"cannot write .*: No space left on device; it needs [0-9.]+ .B, [0-9.]+ .B free; ")
        self.assertEqual(support.figures(run)[1:2], before[1:2])
        self.succeed("train", "--resume", run)


class FullDisk(support.CommandTest):
    def small_disk(self, size):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True).returncode != 0:
            support.skip("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", disk])
        return disk

    def full_download(self, size):
        """A download to a disk that is too small for it: the disk, what it said, the server, and a call that goes on with room."""
        disk = self.small_disk(size)
        server = support.Server({"/cifar-100-binary.tar.gz": support.write_cifar100(self.folder / "c.tar.gz").read_bytes()})
        self.addCleanup(server.close)
        words = ["data", "fetch", "cifar100", "--url", server.url("/cifar-100-binary.tar.gz"), "--checksum", "any", "--data-path", disk]
        done = self.run_sgdph(*words)
        self.assertEqual(done.returncode, 1, done.stderr)

        def go_on():
            subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
            self.succeed(*words)

        return disk, done.stderr, server, go_on

    @support.slow
    def test_a_download_that_does_not_fit_unpacked_keeps_its_archive(self):
        disk, errors, server, go_on = self.full_download("1500k")
        self.assertRegex(errors, r"train.bin: No space left on device; it needs 0.6 MB, 0.\d MB free; .*tar.gz is kept\n")
        self.assertEqual((disk / "cifar-100-binary.tar.gz").read_bytes(), (self.folder / "c.tar.gz").read_bytes())
        self.assertEqual([p.name for p in disk.iterdir() if "new" in p.name], [])
        go_on()
        self.assertEqual(len(server.requests), 1, "it is not downloaded again")

    def test_a_download_that_does_not_fit_goes_on_after_room_is_made(self):
        disk, errors, _, go_on = self.full_download("512k")
        self.assertRegex(errors, r"tar.gz.part: No space left on device; it needs 0.9 MB, 0.5 MB free; .*continued\n")
        came = (disk / "cifar-100-binary.tar.gz.part").stat().st_size
        self.assertGreater(came, 0)
        go_on()

    @support.slow
    def test_a_comparison_on_a_full_disk_says_which_file_and_goes_on(self):
        disk = self.small_disk("150k")
        words = ["compare", "--data-path", self.data, "--width", "0.5", "-b", "64", "--epochs", "1", "--threads", "1",
                 "--opts", "sgdm,adam", "--output-dir", disk / "cmp", "--format", "json"]
        done = self.run_sgdph(*words)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"cannot write .*disk/cmp/.*: No space left on device; it needs ")
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        self.assertEqual(len(json.loads(self.succeed(*words).stdout)), 2)


class OtherPeoplesFolders(support.CommandTest):
    """Root may write everywhere: these tests run the command as nobody where they can."""

    def setUp(self):
        super().setUp()
        os.chmod(self.root, 0o755)
        os.chmod(self.folder, 0o755)
        if self.run_sgdph("--version").returncode != 0:
            support.skip("another account may not read the build folder, so that it cannot run the command")

    def command(self, *words):
        words = super().command(*words)
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words] if os.geteuid() == 0 else words

    def closed(self, folder):
        folder.mkdir(exist_ok=True)
        os.chmod(folder, 0o555)
        self.addCleanup(os.chmod, folder, 0o755)
        return folder

    def as_owner(self, *words):
        done = subprocess.run([support.SGDPH, *map(str, words)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_folder_that_is_not_ours_is_refused_before_anything_is_done(self):
        closed = self.closed(self.folder / "closed")
        self.refuse(*self.small("sgdm", 1, closed / "run"), says=[str(closed), "not a writable folder"])
        self.refuse("compare", "--data-path", self.data, "--epochs", "1", "--opts", "sgdm", "--output-dir", closed / "cmp",
                    says=str(closed))
        self.refuse("data", "fetch", "cifar100", "--url", "http://127.0.0.1:9/c.tar.gz", "--data-path", closed, says=str(closed))

    @support.slow
    def test_a_run_that_is_not_ours_can_be_read_and_not_continued(self):
        run = self.folder / "run"
        self.as_owner(*self.small("sgdm", 1, run))
        self.closed(run)
        for file in run.iterdir():
            os.chmod(file, 0o444)
        before = {p: p.read_bytes() for p in run.iterdir()}
        done = self.run_sgdph("train", "--resume", run, "--epochs", "2")
        self.assertIn(done.returncode, (1, 2))
        self.assertIn(str(run), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.succeed("eval", run, "--data-path", self.data)
        mine = self.folder / "mine"
        mine.mkdir()
        os.chmod(mine, 0o777)
        self.succeed("report", run, "--output", mine / "report.md")
        done = self.run_sgdph("report", run)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn(str(run), done.stderr)
        self.assertEqual(before, {p: p.read_bytes() for p in run.iterdir()})


class NamesLinksAndClocks(support.CommandTest):
    def names_for_folders(self, *names):
        for name in names:
            with self.subTest(name=name):
                under = self.folder / (os.fsdecode(name) if isinstance(name, bytes) else name)
                calm = self.small("sgdm", 1, None, "--output-dir", under)
                self.succeed(*[os.fsencode(str(word)) for word in calm])
                self.succeed("train", "--resume", os.fsencode(under), "--epochs", "2")
                self.succeed("report", os.fsencode(under), "--output", self.folder / "r.md")
                self.succeed("compare", "--data-path", self.data, "--width", "0.5", "--epochs", "1", "-b", "64", "--threads",
                             "1", "--opts", "sgdm", "--output-dir", os.fsencode(str(under) + " cmp"))

    def test_a_name_of_bytes_that_are_no_text(self):
        self.names_for_folders(b"no utf-8 \xff\xfe")

    @support.slow
    def test_names_with_spaces_letters_of_all_languages_and_bytes_that_are_none(self):
        self.names_for_folders("ein Lauf mit Leerzeichen", "läufe/Привет, 世界 ☃", "-dash", "quo'te\"s $(x) `y`", b"no utf-8 \xff\xfe")

    @support.slow
    def test_a_folder_may_be_a_link(self):
        (self.folder / "elsewhere").mkdir()
        (self.folder / "link").symlink_to("elsewhere")
        self.succeed(*self.small("sgdm", 1, self.folder / "link"))
        self.succeed("train", "--resume", self.folder / "link", "--epochs", "2")
        self.assertTrue((self.folder / "elsewhere" / "model.pt").exists())

    def test_a_folder_from_somebody_else_changes_nothing_outside_itself(self):
        run, calm, outside = self.folder / "run", self.folder / "calm", self.folder / "outside"
        self.succeed(*self.small("sgdm", 2, calm))
        self.succeed(*self.small("sgdm", 1, run))
        outside.mkdir()
        for name in ("log.jsonl", "settings.toml", "model.pt", "checkpoint-000000008.ckpt"):
            shutil.move(run / name, outside / name)
            (run / name).symlink_to(outside / name)
        for name in ("checkpoint-000000016.ckpt", "log.jsonl.new", "model.pt.new", "checkpoint-000000016.ckpt.new", "report.html"):
            (outside / f"victim-{name}").write_text("mine")
            (run / name).symlink_to(outside / f"victim-{name}")
        (run / "checkpoint-000000016.ckpt").unlink()
        before = {p: p.read_bytes() for p in outside.iterdir()}
        self.succeed("train", "--resume", run, "--epochs", "2")
        self.succeed("report", run, "--output", self.folder / "r.html", "--figures", run / "figures")
        for figure in list((run / "figures").iterdir()):
            figure.unlink()
            figure.symlink_to(outside / "model.pt")
        self.succeed("report", run, "--figures", run / "figures")
        self.assertEqual([p.name for p in (run / "figures").iterdir() if p.is_symlink()], [])
        self.assertEqual(before, {p: p.read_bytes() for p in outside.iterdir()})
        self.assert_same_run(calm, run)

    @support.slow
    def test_pipes_and_second_names_in_a_folder_from_somebody_else_are_neither_waited_for_nor_written_to(self):
        calm, victim = self.folder / "calm", self.folder / "victim"
        self.succeed(*self.small("sgdm", 1, calm))
        run, said = self.folder / "run", "is no regular file but a pipe or device; remove it"
        for name in (".lock", "settings.toml", "checkpoint-000000008.ckpt"):
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(calm, run)
            (run / name).unlink()
            os.mkfifo(run / name)
            self.refuse("train", "--resume", run, "--epochs", "2", says=[str(run / name), said])
            if name.endswith(".ckpt"):
                self.refuse("eval", run, says=[str(run / name), said])
        shutil.rmtree(run)
        shutil.copytree(calm, run)
        victim.write_text("mine")
        for name in ("report.html", "model.pt", "log.jsonl"):
            os.link(victim, run / f"{name}.new")
            os.mkfifo(run / f"{name}.1-1.new")
        os.link(victim, run / "report.html")
        self.succeed("report", run)
        self.succeed("train", "--resume", run, "--epochs", "2")
        self.assertEqual(victim.read_text(), "mine")
        self.assertEqual(list(run.glob("*.new")), [])

    @support.slow
    def test_a_comparison_with_a_pipe_for_a_lock_goes_on_with_the_other_runs(self):
        words = ["compare", "--data-path", self.data, "--width", "0.25", "-b", "64", "--epochs", "1", "--threads", "1", "--opts",
                 "sgdm,adam", "--output-dir", self.folder / "cmp"]
        (self.folder / "cmp" / "sgdm-seed1").mkdir(parents=True)
        os.mkfifo(self.folder / "cmp" / "sgdm-seed1" / ".lock")
        done = self.run_sgdph(*words)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(".lock is no regular file", done.stderr)
        self.assertIn("Adam alone is finished", done.stdout)

    @support.slow
    def test_settings_from_somebody_else_run_and_write_nothing(self):
        run = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, run))
        text = (run / "settings.toml").read_text()
        mark = self.folder / "mark"
        for line in (f'output_dir = "{mark}"', f'resume = "{mark}"', f'export = "{mark}"', f'command = "touch {mark}"'):
            (run / "settings.toml").write_text(text.replace("[run]", f"[run]\n{line}"))
            done = self.refuse("train", "--resume", run, "--epochs", "2", says=["settings.toml:2", "unknown key"])
        for key in ("data_path", "init", "device", "dataset", "model"):
            wicked = f'{key} = "$(touch {mark}); `touch {mark}` | touch {mark}"'
            lines = [wicked if line.startswith(key + " =") else line for line in text.splitlines()]
            (run / "settings.toml").write_text("\n".join(lines) + "\n")
            done = self.run_sgdph("train", "--resume", run, "--epochs", "2")
            self.assertIn(done.returncode, (0, 2), done.stderr)
        self.assertFalse(mark.exists())

    def clock_jumps(self, *jumps):
        calm, wild = self.folder / "calm", self.folder / "wild"
        self.succeed(*self.small("sgdm", 2, calm, "--tensorboard"))
        for seconds in jumps:
            shutil.rmtree(wild, ignore_errors=True)
            env = support.with_faults(wild, self.folder / "count", clock=seconds)
            self.succeed(*self.small("sgdm", 1, wild, "--tensorboard"), env=env)
            self.succeed("train", "--resume", wild, "--epochs", "2", env=env)
            self.assertEqual((calm / "model.pt").read_bytes(), (wild / "model.pt").read_bytes())
            for record in support.records(wild):
                for name, value in record.get("cost", {}).items():
                    self.assertGreaterEqual(value, 0, name)
            self.succeed("report", wild, "--output", self.folder / "r.md", env=env)

    def test_a_clock_that_jumps_by_years_changes_no_figure(self):
        self.clock_jumps(40 * 365 * 86400)

    @support.slow
    def test_a_clock_that_jumps_changes_no_figure_and_no_time_is_negative(self):
        self.clock_jumps(3600, 40 * 365 * 86400)


class Numbers(support.CommandTest):
    """A number that no figure of ours can be is refused where it stands, and the folder is not lost."""

    def in_settings(self, *values):
        run, recipe = self.folder / "run", self.folder / "recipe.toml"
        self.succeed(*self.small("sgdm", 1, run))
        stored = (run / "settings.toml").read_text()
        for value in values:
            for key in ("seed", "lr"):
                with self.subTest(key=key, value=value):
                    recipe.write_text(f"[run]\n{key} = {value}\n")
                    self.refuse(*self.small("sgdm", 1, self.folder / "new", "--config", recipe), says=f"{recipe}:2")
            lines = [f"lr = {value}" if line.startswith("lr =") else line for line in stored.splitlines()]
            (run / "settings.toml").write_text("\n".join(lines))
            number = 1 + [line.startswith("lr =") for line in lines].index(True)
            self.refuse("train", "--resume", run, "--epochs", "2", says=f"settings.toml:{number}")
        for count in ("epochs", "accumulate", "eval_every"):
            recipe.write_text(f"[run]\n{count} = 9223372036854775807\n")
            self.refuse(*self.small("sgdm", 1, self.folder / "new", "--config", recipe), says=[f"{recipe}:2", count])
        (run / "settings.toml").write_text(stored)
        self.succeed("train", "--resume", run, "--epochs", "2")

    def test_that_is_too_large_in_a_recipe_and_in_stored_settings(self):
        self.in_settings("1e400")

    @support.slow
    def test_in_a_recipe_and_in_stored_settings(self):
        self.in_settings("18446744073709551616", "-9223372036854775809", "1e400", "nan", "inf")

    def test_that_is_too_large_in_a_log(self):
        self.in_log("1e400")

    @support.slow
    def test_in_a_log(self):
        self.in_log("9223372036854775808", "1e400", "NaN", '"a"', "[" * 100 + "]" * 100)

    def in_log(self, *values):
        words = ["compare", "--data-path", self.data, "--width", "0.5", "-b", "64", "--epochs", "1", "--threads", "1",
                 "--opts", "sgdm", "--output-dir", self.folder / "cmp"]
        self.succeed(*words)
        log = self.folder / "cmp" / "sgdm-seed1" / "log.jsonl"
        lines = log.read_text().splitlines()
        for value in values:
            with self.subTest(value=value):
                record = json.loads(lines[1])
                record["test_top1"] = "HERE"
                log.write_text("\n".join([lines[0], json.dumps(record).replace('"HERE"', value), *lines[2:]]) + "\n")
                for command in (words, ["report", self.folder / "cmp", "--output", self.folder / "r.md"]):
                    done = self.run_sgdph(*command)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("log.jsonl:2", done.stderr)
        head = json.loads(lines[0])
        for key, value in (("seed", 2**63), ("epochs", 2**64 - 1)):
            head["settings"][key] = value
            log.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
            self.assertIn("log.jsonl:1", self.run_sgdph("report", self.folder / "cmp", "--output", self.folder / "r.md").stderr)
        log.write_text("\n".join(lines) + "\n")
        self.succeed(*words)


class SharedCores(support.CommandTest):
    @support.long
    def test_a_run_that_others_take_the_core_from_says_so_once(self):
        core = str(min(os.sched_getaffinity(0)))
        spin = [subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"]) for _ in range(4)]
        try:
            run = self.folder / "run"
            words = ["taskset", "-c", core, *self.command(*self.small("sgdm", 400, run, "--checkpoint-every", "100"))]
            child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(75)
            child.terminate()
            _, errors = child.communicate(timeout=60)
        finally:
            for one in spin:
                one.kill()
                one.wait()
        said = [record for record in support.records(run) if record["type"] == "slowed"]
        self.assertEqual(len(said), 1, errors)
        self.assertGreater(said[0]["waited"], 0.25)
        self.assertIn("waits for a core", errors)


class LyingServers(support.CommandTest):
    def fetch(self, answer, checksum="any"):
        archive = support.write_cifar100(self.folder / "c.tar.gz").read_bytes()
        server = support.Server({"/cifar-100-binary.tar.gz": archive}, answer=answer)
        self.addCleanup(server.close)
        self.data_root = self.folder / "data"
        began = time.monotonic()
        done = self.run_sgdph("data", "fetch", "cifar100", "--url", server.url("/cifar-100-binary.tar.gz"), "--checksum", checksum,
                              "--data-path", self.data_root)
        self.assertLess(time.monotonic() - began, 200)
        return done

    def assert_nothing(self, done, says):
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(says, done.stderr)
        self.assertFalse((self.data_root / "cifar-100-binary").exists())

    def test_another_checksum(self):
        done = self.fetch(None, "sha256:" + "0" * 64)
        self.assert_nothing(done, "it was removed")
        self.assertEqual([p.name for p in self.data_root.iterdir()], [])

    def test_other_bytes_of_the_same_length(self):
        self.assert_nothing(self.fetch(lambda s, h, b, at: (s, h, os.urandom(len(b)), at)), "damaged or no archive")

    @support.long
    def test_a_length_that_is_more_than_comes(self):
        def answer(status, headers, body, start):
            return status, {**headers, "Content-Length": len(body) - start + 1000}, body, start

        self.assert_nothing(self.fetch(answer), "cannot download")

    def test_a_length_that_is_absurd(self):
        def answer(status, headers, body, start):
            return status, {**headers, "Content-Length": 2**62}, body, start

        self.assert_nothing(self.fetch(answer), "refused")

    @support.long
    def test_a_body_without_an_end(self):
        class Endless(bytes):
            def __len__(self):
                return 1 << 40

            def __getitem__(self, _):
                return b"x" * 65536

        def answer(status, headers, body, start):
            return 200, {"ETag": '"one"'}, Endless(), 0

        self.assert_nothing(self.fetch(answer), "refused")

    def test_a_redirection_to_a_file(self):
        self.assert_nothing(self.fetch(lambda s, h, b, at: (302, {"Location": "file:///etc/passwd", "Content-Length": 0}, b"", 0)),
                            "cannot download")


if __name__ == "__main__":
    support.main()
