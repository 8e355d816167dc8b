"""What the tests of the command share: a small data set, runs of the program, and how to compare two runs."""

import gzip
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

SGDPH = os.environ["SGDPH"]


def write_idx(path, sizes, data):
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(struct.pack(">I", 0x800 + len(sizes)) + b"".join(struct.pack(">I", n) for n in sizes) + data)


def write_fashion_mnist(folder, train=256, test=64, seed=1, classes=10):
    """A learnable set of the right form: class c has a bright bar in row 2c + 3, and noise."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        labels = bytes(rng.randrange(classes) for _ in range(count))
        images = bytearray()
        for label in labels:
            image = bytearray(rng.randbytes(28 * 28))
            for i in range(len(image)):
                image[i] >>= 2
            image[(2 * label + 3) * 28 : (2 * label + 4) * 28] = b"\xff" * 28
            images += image
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", (count, 28, 28), bytes(images))
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", (count,), labels)


def records(folder):
    return [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text().splitlines()]


def figures(folder):
    """Every figure of a log but times and memory."""
    kept = []
    for record in records(folder):
        record.pop("cost", None)
        record.pop("started", None)
        kept.append(record)
    return kept


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="sgdph-cli-"))
        cls.data = cls.root / "fashion"
        write_fashion_mnist(cls.data)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.root))

    def small(self, opt="sgdm", epochs=2, output=None, *extra):
        """The options of a run of seconds."""
        words = ["train", "--dataset", "fashion-mnist", "--data-path", str(self.data), "--width", "0.5", "-b", "32"]
        words += ["--opt", opt, "--epochs", str(epochs), "--threads", "1", *map(str, extra)]
        return words + (["--output-dir", str(output)] if output else [])

    def command(self, *words):
        return [SGDPH, *(word if isinstance(word, bytes) else str(word) for word in words)]

    def run_sgdph(self, *words, **options):
        options.setdefault("cwd", self.folder)
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=300, **options)

    def succeed(self, *words, **options):
        done = self.run_sgdph(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refuse(self, *words, says, writes_nothing=True, **options):
        """One line on standard error with these words, exit code 2, and nothing written."""
        before = sorted(str(p) for p in self.folder.rglob("*"))
        done = self.run_sgdph(*words, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("sgdph: "), done.stderr)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        if writes_nothing:
            self.assertEqual(before, sorted(str(p) for p in self.folder.rglob("*")))
        return done

    def stop_at_a_checkpoint(self, words, folder):
        """Starts the command, presses Ctrl-C (all its processes get it) when a run below the folder has a checkpoint, and
        gives what it says; it must end as interrupted."""
        child = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + 120
        while not list(folder.glob("*/*.ckpt")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130, errors)
        return errors

    def assert_same_run(self, one, other):
        self.assertEqual(figures(one), figures(other))
        self.assertEqual((Path(one) / "model.pt").read_bytes(), (Path(other) / "model.pt").read_bytes())
