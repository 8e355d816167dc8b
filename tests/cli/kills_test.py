"""Runs, comparisons, experiments and downloads that are killed at any moment, over and over, end as if nothing had been;
and so do those that a power cut takes everything from that no fsync had brought to the disk."""

import os
import random
import shutil
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import support


class Subject:
    """A command that is started until it has ended well, and what its folder must then hold."""

    def __init__(self, test, name):
        self.test, self.name = test, name
        self.home = test.folder / name
        self.home.mkdir()
        self.calm, self.wild = self.home / "calm", self.home / "wild"

    def start(self, folder, **options):
        return subprocess.Popen(self.test.command(*self.words(folder)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, errors="replace", cwd=self.home, start_new_session=True, **options)

    def run(self, folder, **options):
        return self.test.run_sgdph(*self.words(folder), cwd=self.home, **options)

    def finish(self, folder, **options):
        done = self.run(folder, **options)
        self.test.assertEqual(done.returncode, 0, f"{self.name}: {done.stderr}")

    def begin(self):
        """The calm one: it shows how long it takes and how many calls it makes."""
        began = time.monotonic()
        self.calm.mkdir()
        child = self.start(self.calm, env=support.with_faults(self.calm, self.home / "count"))
        _, errors = child.communicate(timeout=300)
        self.test.assertEqual(child.returncode, 0, f"{self.name}: {errors}")
        self.seconds = time.monotonic() - began
        self.calls = support.calls_in(self.home / "count")["any"]
        return self

    def runs(self, folder):
        return sorted(path.parent.relative_to(folder) for path in folder.rglob("settings.toml"))

    def check(self, folder, tidy=True):
        """All is there; and `tidy`: nothing else."""
        test = self.test
        test.assertEqual(self.runs(self.calm), self.runs(folder), self.name)
        for run in self.runs(folder):
            test.assert_same_run(self.calm / run, folder / run)
        left = [p for p in folder.rglob("*") if p.suffix in (".new", ".claim", ".part")]
        test.assertEqual(left if tidy else [], [], self.name)


class Train(Subject):
    def words(self, folder):
        if (folder / "run" / "settings.toml").exists():
            return ["train", "--resume", folder / "run"]
        return self.test.small("sgd-ph", 3, folder / "run", "--checkpoint-every", 2, "--tensorboard")


class AutoResume(Subject):
    """All that a run may keep beside its weights, by the same command every time."""

    def words(self, folder):
        return self.test.small("sgdm", 3, folder / "run", "--auto-resume", "--checkpoint-every", 2, "--val-split", 64, "--model-ema",
                               "--model-ema-steps", 2, "--model-ema-decay", 0.99, "--eval-every", 0.5)

    def check(self, folder, tidy=True):
        super().check(folder, tidy)
        end = support.records(folder / "run")[-1]
        self.test.assertEqual(end["status"], "finished")
        self.test.assertEqual([p.name for p in folder.rglob("best*")], ["best.pt"])


class Compare(Subject):
    def words(self, folder):
        return ["compare", "--data-path", self.test.data, "--width", "0.5", "-b", "64", "--epochs", "2", "--threads", "1",
                "--opts", "sgdm,adahessian", "--checkpoint-every", "2", "--jobs", "2", "--output-dir", folder / "cmp"]

    def check(self, folder, tidy=True):
        super().check(folder, tidy)
        self.test.assertEqual(sorted(p.name for p in (folder / "cmp").glob("*.toml") if tidy), [])
        self.test.assertTrue((folder / "cmp" / "summary.txt").exists())


class SmallCompare(Compare):
    def words(self, folder):
        words = super().words(folder)
        for option, value in (("--epochs", "1"), ("--opts", "sgdm")):
            words[words.index(option) + 1] = value
        return words


class Reproduce(Subject):
    def words(self, folder):
        (self.home / "mine.toml").write_text(support.experiment(width=0.5, batch_size=64, checkpoint_every=2))
        return ["reproduce", "mine.toml", "--data-path", self.test.data, "--threads", "1", "--output-dir", folder / "out"]


class SmallReproduce(Reproduce):
    def words(self, folder):
        return [*super().words(folder), "--only", "opt=sgdm"]


class Fetch(Subject):
    def __init__(self, test, name):
        super().__init__(test, name)
        archive = support.write_cifar100(self.home / "c.tar.gz").read_bytes()
        self.server = support.Server({"/cifar-100-binary.tar.gz": archive}, pause=0.02)
        test.addCleanup(self.server.close)

    def words(self, folder):
        return ["data", "fetch", "cifar100", "--url", self.server.url("/cifar-100-binary.tar.gz"), "--checksum", "any",
                "--data-path", folder / "data"]

    def check(self, folder, tidy=True):
        super().check(folder, tidy)
        calm, wild = (under / "data" / "cifar-100-binary" for under in (self.calm, folder))
        self.test.assertEqual([p.name for p in sorted(calm.iterdir())], [p.name for p in sorted(wild.iterdir())])
        for file in calm.iterdir():
            self.test.assertTrue(file.read_bytes() == (wild / file.name).read_bytes(), file.name)


class Kills(support.CommandTest):
    def life(self, subject, rng):
        """One start, and an end by force. Whether it was killed, and whether it had ended well before."""
        how = rng.choice(["call", "call", "kill", "term", "twice"])
        if how == "call":
            done = subject.run(subject.wild, env=support.with_faults(
                subject.wild, subject.home / "count", call="any", at=rng.randint(1, subject.calls), error="kill"))
            code, errors = done.returncode, done.stderr
        else:
            child = subject.start(subject.wild)
            time.sleep(rng.uniform(0, 1.2 * subject.seconds))
            child.send_signal({"kill": signal.SIGKILL, "term": signal.SIGTERM, "twice": signal.SIGINT}[how])
            if how == "twice":
                time.sleep(rng.choice([rng.uniform(0, 0.05), rng.uniform(0.25, 0.5)]))  # told twice, or meant
                child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=300)
            code = child.returncode
        # A run of a study that is killed is one that failed; before the guard is up a signal ends the program at once.
        fine = {"call": (-9, 1), "kill": (-9,), "term": (130, -15), "twice": (130, -2)}[how]
        self.assertIn(code, (0, *fine), f"{subject.name} by {how}: {errors}")
        return code != 0, code == 0

    def torment(self, subject, kills, seed):
        rng = random.Random(seed)
        killed = rounds = 0
        while killed < kills:
            shutil.rmtree(subject.wild, ignore_errors=True)
            subject.wild.mkdir()
            ended = False
            while killed < kills and not ended:
                struck, ended = self.life(subject, rng)
                killed += struck
            if not ended:
                subject.finish(subject.wild)
            subject.check(subject.wild)
            rounds += 1
        print(f"{subject.name}: {killed} kills in {rounds} rounds, every round like the calm one", flush=True)

    def torment_all(self, kills, compare=Compare, reproduce=Reproduce):
        shares = {Train: 0.25, AutoResume: 0.2, compare: 0.15, reproduce: 0.1, Fetch: 0.3}
        subjects = [kind(self, kind.__name__.lower()) for kind in shares]
        for subject in subjects:
            subject.begin()
        with ThreadPoolExecutor(2) as pool:
            work = [pool.submit(self.torment, subject, round(kills * share), seed)
                    for seed, (subject, share) in enumerate(zip(subjects, shares.values()))]
            for one in work:
                one.result()

    def test_sixty_kills(self):
        self.torment_all(60, SmallCompare, SmallReproduce)

    @support.slow
    def test_sixty_kills_with_studies_of_two_runs(self):
        self.torment_all(60)

    @support.long
    def test_a_thousand_kills(self):
        # SGDPH_KILLS: another number, for those in haste.
        self.torment_all(int(os.environ.get("SGDPH_KILLS", 1000)))


class Disk:
    """What a journal of the faults' library leaves on a disk after a power cut. A file holds what its last fsync brought
    there; a name is there if an fsync of its folder came after it. More may be there by chance."""

    def __init__(self, journal, root):
        self.root, self.changes = str(root), []
        with open(journal, "rb") as text:
            while line := text.readline():
                what, file, offset, count, path, to = line.decode().rstrip("\n").split("\t")
                self.changes.append((what, int(file), int(offset), text.read(int(count)), path.rstrip("/"), to))

    def after(self, cut, luck, folder):
        """Writes to `folder` what is left if the power fails before change number `cut`. luck: none, names (all names are
        there, but no bytes without fsync) or random."""
        rng = random.Random(cut)
        files, names, synced = {}, [], {}  # by inode: the one of that number that is there now
        for i, (what, inode, offset, content, path, to) in enumerate(self.changes[:cut]):
            if what == "create":
                files[inode] = {"disk": b"", "pending": []}
                names.append((i, what, files[inode], path, to))
            elif what in ("mkdir", "rename", "unlink", "link"):
                names.append((i, what, None, path, to))
            elif what == "fsync" and inode in files:
                files[inode] = self.flushed(files[inode])
            elif what == "fsync-folder":
                synced[path] = i
            elif inode in files:
                files[inode]["pending"].append((what, offset, content))
        self.replay(names, synced, luck, rng, folder)

    @staticmethod
    def flushed(file, count=None):
        content = bytearray(file["disk"])
        for what, offset, added in file["pending"][:count]:
            if what == "truncate":
                del content[offset:]
            else:
                content[offset:offset + len(added)] = added
        file["disk"], file["pending"] = bytes(content), []
        return file

    def replay(self, names, synced, luck, rng, folder):
        there = {}
        lucky = {}  # by folder: how many names more than must be
        for i, what, file, path, to in names:
            parents = {os.path.dirname(path), os.path.dirname(to or path)}
            for parent in parents:
                lucky.setdefault(parent, rng.randint(0, len(self.changes)) if luck == "random" else 0)
            if luck != "names" and not all(i < max(synced.get(parent, -1), lucky[parent]) for parent in parents):
                continue
            if what in ("create", "mkdir"):
                there[path] = file
            elif what == "unlink":
                there.pop(path, None)
            else:
                moved = {p: f for p, f in there.items() if p == path or p.startswith(path + "/")}
                for p, f in moved.items():
                    there[to + p[len(path):]] = f
                    if what == "rename":
                        del there[p]
        for path, file in sorted(there.items()):
            place = Path(str(folder) + path[len(self.root):])
            if not place.parent.is_dir():
                continue
            if file is None:
                place.mkdir(exist_ok=True)
            else:
                count = rng.randint(0, len(file["pending"])) if luck == "random" else 0
                place.write_bytes(self.flushed(dict(file), count)["disk"])


class PowerCuts(support.CommandTest):
    def cut_power(self, kind, cuts):
        subject = kind(self, kind.__name__.lower())
        subject.calm.mkdir()
        journal = self.folder / "journal"
        subject.finish(subject.calm, env=support.with_faults(subject.calm, self.folder / "count", journal=journal))
        disk = Disk(journal, subject.calm)
        rng = random.Random(1)
        whole = self.folder / "whole"
        whole.mkdir()
        disk.after(len(disk.changes), "none", whole)
        subject.check(whole, tidy=False)  # at its end all is on the disk
        for number in range(cuts):
            shutil.rmtree(subject.wild, ignore_errors=True)
            subject.wild.mkdir()
            disk.after(rng.randint(1, len(disk.changes)), ("none", "names", "random")[number % 3], subject.wild)
            subject.finish(subject.wild)
            subject.check(subject.wild)
        print(f"{subject.name}: {cuts} power cuts among {len(disk.changes)} changes", flush=True)

    def test_a_run_goes_on_after_a_power_cut_of_each_luck(self):
        self.cut_power(Train, 3)

    @support.slow
    def test_a_run_goes_on_after_a_power_cut(self):
        self.cut_power(Train, 6)

    @support.slow
    def test_a_run_with_all_that_it_may_keep_goes_on_after_a_power_cut(self):
        self.cut_power(AutoResume, 6)

    @support.slow
    def test_a_comparison_goes_on_after_a_power_cut(self):
        self.cut_power(Compare, 3)

    def test_a_download_goes_on_after_a_power_cut(self):
        self.cut_power(Fetch, 3)

    @support.long
    def test_a_run_goes_on_after_any_of_many_power_cuts(self):
        self.cut_power(Train, 60)

    @support.long
    def test_a_comparison_goes_on_after_any_of_many_power_cuts(self):
        self.cut_power(Compare, 20)


if __name__ == "__main__":
    support.main()
