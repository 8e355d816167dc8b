"""Runs alone, two and four side by side: bench/side_by_side.py SGDPH [REPEATS]

Each trains the same small network, with all cores (as one who knows nothing of the others) or with its share of them; the
threads of OpenMP wait as the command has it, or as libgomp does by default. Prints the seconds of training of the slowest
of the runs, the least of the repeats."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

CORES = len(os.sched_getaffinity(0))
WAITS = {"as the command has it": {}, "libgomp's default": {"GOMP_SPINCOUNT": "300000"}}


def write_data(folder):
    """Noise in the form of Fashion-MNIST."""
    rng = random.Random(1)
    for name, images in (("train", 2048), ("t10k", 64)):
        for kind, header, size in (("images-idx3", (0x803, images, 28, 28), 784), ("labels-idx1", (0x801, images), 1)):
            content = rng.randbytes(images * size) if size > 1 else bytes(i % 10 for i in range(images))
            (folder / f"{name}-{kind}-ubyte").write_bytes(struct.pack(f">{len(header)}I", *header) + content)


def seconds(sgdph, folder, runs, threads, wait):
    env = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")}
    children = []
    for i in range(runs):
        shutil.rmtree(folder / f"run{i}", ignore_errors=True)
        words = [sgdph, "train", "--dataset", "fashion-mnist", "--data-path", folder, "--opt", "sgd-ph", "--epochs", "1", "-b", "64",
                 "--threads", threads, "--progress", "quiet", "--output-dir", folder / f"run{i}"]
        children.append(subprocess.Popen(list(map(str, words)), env={**env, **wait}))
    if any([child.wait() for child in children]):
        sys.exit("a run failed")
    logs = [(folder / f"run{i}" / "log.jsonl").read_text().splitlines() for i in range(runs)]
    return max(json.loads(log[-1])["cost"]["train_seconds"] for log in logs)


def main():
    sgdph, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        print(f"seconds of training on {CORES} cores, {repeats} repeats   alone     two    four")
        for share in (False, True):
            for label, wait in WAITS.items():
                figures = [min(seconds(sgdph, folder, runs, max(1, CORES // runs) if share else CORES, wait) for _ in range(repeats))
                           for runs in (1, 2, 4)]
                threads = "a share each" if share else "all cores each"
                print(f"{threads + ', ' + label:<44}" + "".join(f"{figure:8.2f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
