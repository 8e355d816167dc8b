#!/usr/bin/env python3
"""Writes the samples of a version that later versions must read: runs stopped half way with the log they would have had,
and the reports of cost, inspect and reproduce. Run once by that version, before its release:

    SGDPH=.../sgdph SGDPH_WRITE_SAMPLES=.../sgdph_write_samples tests/samples/write.py FOLDER

The optimizers' archives beside them are written by write_archive_samples of tests/support/archive_samples.h."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SGDPH = os.path.abspath(os.environ["SGDPH"])
OPTIMIZERS = ["sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "sgd-ph"]
EXPERIMENT = """title = "Two optimizers"
ranked = "opt"
[[axis]]
name = "opt"
values = ["sgdm", "sgd-ph"]
[full.run]
dataset = "fashion-mnist"
epochs = 10
[desk]
runs = 1
why = "A sample must be small."
[desk.run]
model = "resnet8"
width = 0.2
epochs = 2
batch_size = 16
lr_scheduler = "constant"
"""


def run(*words):
    subprocess.run([SGDPH, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def write_run(folder, opt, data):
    """The run in FOLDER/OPT is stopped after step 3 or a little later; OPT/whole.jsonl is the log of one that was not."""
    words = ["train", "--data-path", data, "--model", "resnet8", "--width", "0.2", "-b", "16", "--opt", opt, "--epochs", "4",
             "--threads", "1", "--seed", "3", "--checkpoint-every", "1", "--keep-checkpoints", "1", "--lr-scheduler", "cosine"]
    output, whole = folder / opt, folder / "whole"
    child = subprocess.Popen([SGDPH, *words, "--output-dir", output], stdout=subprocess.DEVNULL)
    while not list(output.glob("checkpoint-00000000[3-9].ckpt")):
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    assert child.wait() == 130, f"{opt} ended before it was stopped"
    run(*words, "--output-dir", whole)
    shutil.move(whole / "log.jsonl", output / "whole.jsonl")
    shutil.rmtree(whole)
    (output / ".lock").unlink(missing_ok=True)


def main():
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root)
    data = Path("data")
    subprocess.run([os.environ["SGDPH_WRITE_SAMPLES"], "fashion-mnist", data, "64", "32", "1"], check=True)
    Path("runs").mkdir()
    for opt in OPTIMIZERS:
        write_run(Path("runs"), opt, data)
    records = Path("records")
    run("cost", "--model", "resnet8", "--batch-size", "4", "--engines", "sgd-ph", "--rounds", "2", "--threads", "1",
        "--output-dir", records / "cost")
    run("inspect", "--data-path", data, "--width", "0.2", "-b", "16", "--threads", "1", "--blocks", "1", "--output-dir",
        records / "inspect")
    Path("two.toml").write_text(EXPERIMENT)
    run("reproduce", "two.toml", "--data-path", data, "--threads", "1", "--output-dir", records / "two")
    for path in [*records.glob("*/*.ckpt"), *records.glob("*/*/*.ckpt"), *records.glob("*/*/model.pt"), *records.glob("*/*/.lock"),
                 *records.glob("*/.lock"), *records.glob("*/*.md"), *records.glob("*/*.txt"), *records.glob("*/*.csv"), *records.glob("*/*.svg")]:
        path.unlink()
    shutil.rmtree(data)


if __name__ == "__main__":
    main()
