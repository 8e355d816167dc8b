#!/usr/bin/env python3
"""Writes the samples of a version that later versions must read: archives of optimizers, runs stopped half way with the log
they would have had, and the reports of cost, inspect and reproduce. Run once by that version, before its release:

    tests/samples/write.py build/dev 0.1                     to be packed as 0.1.tar.xz
    tests/samples/write.py build/dev 1.13 --no-reports       one of each LibTorch, to be packed as libtorch.tar.xz"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SGDPH = BUILD / "cli/sgdph"
OPTIMIZERS = ["sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "lion", "sgd-ph"]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
os.environ["SGDPH"] = str(SGDPH)
import support  # noqa: E402


def run(*words):
    subprocess.run([SGDPH, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def write_run(folder, opt, data):
    """The run in FOLDER/OPT is as if killed after step 6, within its second epoch; OPT/whole.jsonl is the log it would have had."""
    output = folder / opt
    run("train", "--data-path", data, "--model", "resnet8", "--width", "0.2", "-b", "16", "--opt", opt, "--epochs", "4", "--threads", "1",
        "--seed", "3", "--checkpoint-every", "1", "--keep-checkpoints", "16", "--lr-scheduler", "cosine", "--output-dir", output)
    log = output / "log.jsonl"
    shutil.copy(log, output / "whole.jsonl")
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))
    for path in [*output.glob("checkpoint-*.ckpt"), *output.glob("*.pt"), output / ".lock"]:
        if path.name != "checkpoint-000000006.ckpt":
            path.unlink(missing_ok=True)


def write_archives_and_runs(data):
    subprocess.run([BUILD / "tests/sgdph_core_tests", "--gtest_filter=ArchiveSamples.OfTodayAreWrittenAndRead"],
                   env={**os.environ, "SGDPH_WRITE_ARCHIVES": "archives", "OMP_NUM_THREADS": "1"}, check=True)
    Path("runs").mkdir()
    for opt in OPTIMIZERS:
        write_run(Path("runs"), opt, data)


def write_reports(data):
    records = Path("records")
    run("cost", "--model", "resnet8", "--batch-size", "4", "--engines", "sgd-ph", "--rounds", "2", "--threads", "1",
        "--output-dir", records / "cost")
    run("inspect", "--data-path", data, "--width", "0.2", "-b", "16", "--threads", "1", "--blocks", "1", "--output-dir",
        records / "inspect")
    Path("two.toml").write_text(support.experiment(width=0.2, batch_size=16, lr_scheduler="constant"))
    run("reproduce", "two.toml", "--data-path", data, "--threads", "1", "--output-dir", records / "two")
    for path in [*records.glob("*/*.ckpt"), *records.glob("*/*/*.ckpt"), *records.glob("*/*/model.pt"), *records.glob("*/*/.lock"),
                 *records.glob("*/.lock"), *records.glob("*/*.md"), *records.glob("*/*.txt"), *records.glob("*/*.csv"), *records.glob("*/*.svg")]:
        path.unlink()


def main():
    root = Path(sys.argv[2])
    root.mkdir(parents=True, exist_ok=True)
    os.chdir(root)
    data = Path("data")
    subprocess.run([BUILD / "tests/sgdph_write_samples", "fashion-mnist", data, "64", "32", "1"], check=True)
    write_archives_and_runs(data)
    if "--no-reports" not in sys.argv[3:]:
        write_reports(data)
    shutil.rmtree(data)


if __name__ == "__main__":
    main()
