"""Folders of runs as `sgdph train` writes them, without training: curves of a known form."""

import json
import math
import random
from pathlib import Path

SETTINGS = {
    "augment": True, "batch_size": 128, "dataset": "cifar100", "data_path": "/home/somebody/cifar100", "epochs": 20, "form": "cifar",
    "init": "", "kernels": "fast", "lr_gamma": 0.1, "lr_scheduler": "step", "lr_step_size": 60, "model": "resnet18",
    "norm": "batch", "seed": 1, "test_limit": 0, "threads": 2, "train_limit": 0, "weight_decay": 5e-4, "width": 1.0,
    "workers": 2,
}
# Final accuracy, seconds of an epoch, bytes, learning rate.
OPTIMIZERS = {
    "sgdm": (77.2, 30.0, 1.0e9, 0.1),
    "adam": (71.5, 32.0, 1.1e9, 1e-3),
    "adamw": (74.6, 32.5, 1.1e9, 1e-3),
    "adabelief": (75.9, 33.0, 1.1e9, 1e-3),
    "adahessian": (76.1, 120.0, 1.4e9, 0.15),
    "apollo": (76.0, 34.0, 1.15e9, 0.01),
    "sgd-ph": (78.3, 41.0, 1.25e9, 0.01),
}


def write_run(folder, opt="sgdm", seed=1, epochs=20, status="finished", top1=None, first_top1=None, **settings):
    final, seconds, memory, lr = OPTIMIZERS[opt]
    final = final if top1 is None else top1
    rng = random.Random(f"{opt} {seed} {sorted(settings.items())}")
    final += rng.gauss(0, 0.3)
    header = {"type": "header", "version": "0.1.0", "libtorch": "1.13.1", "cpu": "A CPU <made up> & fast", "threads": 2,
              "seed": seed, "started": "2026-01-31T12:00:00Z", "parameters": 11220132, "train_images": 50000,
              "test_images": 10000, "settings": {**SETTINGS, "opt": opt, "seed": seed, "epochs": epochs, "lr": lr, **settings}}
    records = [header]
    for epoch in range(1, epochs + 1):
        rise = 1 - math.exp(-4 * epoch / epochs)
        accuracy = final * rise / (1 - math.exp(-4)) + rng.gauss(0, 1.5) * (1 - epoch / epochs)
        if epoch == 1 and first_top1 is not None:
            accuracy = first_top1
        records.append({
            "type": "epoch", "epoch": epoch, "step": 390 * epoch, "lr": lr, "train_loss": 4.6 * (1.02 - rise) + 0.01,
            "train_top1": min(99.9, accuracy + 20 * rise), "test_loss": 4.6 - 3.6 * rise + rng.random() * 0.05,
            "test_top1": accuracy, "test_top5": min(99.5, accuracy + 15), "skipped_steps": 0, "damaged_images": 0,
            "cost": {"train_seconds": seconds * (1 + 0.05 * rng.random()), "test_seconds": 3.0,
                     "images_per_second": 50000 / seconds, "peak_memory_bytes": int(memory)}})
    if status != "unfinished":
        records.append({"type": "end", "status": status, "epochs": epochs, "steps": 390 * epochs,
                        "test_top1": records[-1].get("test_top1", 0), "best_top1": 0, "best_epoch": epochs,
                        "cost": {"train_seconds": seconds * epochs, "peak_memory_bytes": int(memory)}})
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def write_comparison(folder, seeds=3, epochs=20, **settings):
    for opt in OPTIMIZERS:
        for seed in range(1, seeds + 1):
            write_run(Path(folder) / f"{opt}-seed{seed}", opt, seed, epochs, **settings)


def write_references(folder, seeds=3):
    """Figures to stand beside a comparison, some in another order than its own."""
    paper = {"sgdm": 77.20, "adam": 71.50, "adamw": 77.23, "adabelief": 77.43, "adahessian": 76.73, "apollo": 76.73, "sgd-ph": 78.51}
    figures = [{"source": "paper", "value": value, "deviation": 0.2, "runs": [f"{opt}-seed{s}" for s in range(1, seeds + 1)]}
               for opt, value in paper.items()]
    (Path(folder) / "reference.json").write_text(json.dumps({"figures": figures}))


def estimate(value):
    return {"value": value, "low": 0.97 * value, "high": 1.04 * value, "count": 40}


def write_cost(folder):
    none = {"mean": 0.0, "worst": 0.0, "relative_mean": 0.0, "relative_worst": 0.0}
    rows = []
    for batch in (32, 128):
        for engine, time, memory in (("sgdm", 1.0, 1.0), ("adam", 1.03, 1.05), ("adahessian", 3.6, 1.4), ("sgd-ph", 1.34, 1.2),
                                     ("sgd-ph-1/8", 1.05, 1.02), ("published", 5.6, 1.9)):
            held = {"mean": memory * 1e8, "worst": memory * 1.1e8, "relative_mean": memory, "relative_worst": 1.1 * memory}
            rows.append({"model": "resnet18", "batch_size": batch, "engine": engine, "kernels": "fast", "note": "",
                         "seconds": estimate(time * 0.2), "ratio": estimate(time), "held": held, "resident": held,
                         "positions": []})
    rows.append({**rows[2], "batch_size": 256, "ratio": {**estimate(0), "count": 0}, "held": none, "resident": none,
                 "note": "ended by signal 9"})
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cost.json").write_text(json.dumps({
        "form": "cifar", "cpu": "A CPU", "libtorch": "1.13.1", "version": "0.1.0", "started": "2026-01-31T12:00:00Z",
        "threads": 2, "seed": 1, "resident_known": True, "rows": rows, "fast_to_stock": []}))


def agreement(i):
    return {"cosine": 0.9 / i, "same_sign": 0.5 + 0.1 * i, "median_ratio": 2.0 * i, "error": 1.5 * i}


def range_of(least, median, most):
    return {"least": least, "median": median, "most": most}


def write_inspection(folder):
    """As `sgdph inspect` writes it; a test compares the keys with its own."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(1, 5):
        channels = 4 * i
        figures = [0.01 * j - 0.02 for j in range(channels)]
        probes = [{"probe": probe, "estimate": {**agreement(i), "error": error * i}, "divisor": agreement(i), "values": figures,
                   "divisors": figures} for probe, error in (("ones", 8.125), ("hadamard", 0.4375), ("rademacher", 2.125))]
        rows.append({"block": f"layer{i}.bn1.weight", "kind": "gain", "channels": channels, "measured": channels,
                     "shift_invariant": i == 2, "note": "", "off_diagonal": 0.9 + 0.1 * i, "over_shards": 0.5, "row_sum": agreement(i),
                     "smallest_eigenvalue": -0.01 * i, "largest_eigenvalue": 0.5 * i, "asymmetry": 1e-6, "product_error": 1e-5,
                     "rows": list(range(channels)), "diagonal": figures, "row_sums": figures, "probes": probes})
    # One that could not be measured has null for its figures.
    nothing = {key: None for key in agreement(1)}
    rows.append({**rows[0], "block": "layer5.bn1.weight", "note": "not finite", "off_diagonal": None, "over_shards": None, "row_sum": nothing,
                 "smallest_eigenvalue": None, "largest_eigenvalue": None, "asymmetry": None, "product_error": None,
                 "diagonal": [], "row_sums": [], "probes": []})
    verdict = {"blocks": 3, "not_diagonal": 3, "in_part": 0, "off_diagonal": range_of(1.0, 1.2, 1.3),
               "same_sign": range_of(0.6, 0.8, 0.9), "row_sum_ratio": range_of(2.0, 6.0, 8.0),
               "row_sum_error": range_of(1.5, 4.5, 6.0), "shift_invariant": ["layer2.bn1.weight"],
               "text": "The blocks are not diagonal."}
    (folder / "inspect.json").write_text(json.dumps({
        "model": "resnet8", "norm": "batch", "dataset": "fashion-mnist", "width": 1.0,
        "source": "weights as they begin, seed 1", "batch_size": 64, "shards": 4, "loss": 2.3, "precision": "float32", "rule": "reference",
        "refreshes": 32, "probe_cycle": 8, "hessian_momentum": 0.9, "seed": 1, "products": 50, "seconds": 1.5, "planned": 5,
        "cpu": "A CPU", "libtorch": "1.13.1", "version": "0.1.0", "started": "2026-01-31T12:00:00Z", "threads": 2, "rows": rows,
        "verdict": verdict}, sort_keys=True))
    cells = "".join(f'<rect x="{20 * i}" y="{20 * j}" width="20" height="20" fill="hsl({30 * (i * j % 7)},70%,50%)"/>'
                    for i in range(8) for j in range(8))
    (folder / "inspect-block.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160" width="160" height="160"><script>window.harm=1</script>{cells}</svg>')


def write_experiment(folder):
    """Runs and NAME.json as `sgdph reproduce` writes them. SGDM has an accuracy of 0 after its first epoch."""
    folder = Path(folder)
    cells = []
    for rank, (opt, label, paper) in enumerate((("sgd-ph", "SGD-PH", 95.3), ("sgdm", "SGDM", 95.1), ("adam", "Adam & co", None)), 1):
        runs = [f"{opt}-seed{seed}" for seed in (1, 2)]
        for seed, run in enumerate(runs, 1):
            write_run(folder / run, opt, seed, 10, dataset="cifar10", first_top1=0.0 if opt == "sgdm" else None)
        cells.append({"values": {"optimizer": opt}, "label": label, "row": label,
                      "ours": {"mean": OPTIMIZERS[opt][0], "std": 0.3, "n": 2}, "planned": 2, "diverged": 0,
                      "paper": paper and {"value": paper, "std": None, "table": "Table 9", "section": "", "note": ""},
                      "difference": paper and OPTIMIZERS[opt][0] - paper, "rank": rank, "paper_rank": rank if paper else 0,
                      "curve": [], "runs": runs, "settings": {"dataset": "cifar10", "opt": opt}})
    group = {"label": "", "cells": [0, 1, 2], "pairs": 1, "swapped": 0, "tau": 1.0, "best": "SGD-PH",
             "paper_best": "SGD-PH", "words": "the paper's ranking (Kendall's tau 1.00)"}
    (folder / "mine.json").write_text(json.dumps({
        "experiment": "mine", "title": "Table <9> once more", "paper": "Table 9", "scale": "desk", "axes": ["optimizer"],
        "ranked": "optimizer", "quantity": "test accuracy %", "version": "0.1.0", "reductions": ["epochs 200 -> 10"],
        "why": "Time.", "notes": [], "cells": cells, "groups": [group]}))


HOSTILE = '</script><script>window.harm = 1</script><img src=x onerror="window.harm = 1">&\'`|*'


def write_hostile(folder):
    """Names, settings and machines that try to become markup."""
    run = write_run(Path(folder) / "<script>window.harm = 1<", "sgdm", 1, 3, model=HOSTILE, rebound=HOSTILE, dataset="</title>" + HOSTILE)
    other = write_run(Path(folder) / "b&b <!--", "sgdm", 1, 3, model=HOSTILE, rebound="plain", dataset="</title>" + HOSTILE)
    for folder_ in (run, other):
        log = folder_ / "log.jsonl"
        log.write_text(log.read_text().replace("A CPU <made up> & fast", json.dumps(HOSTILE)[1:-1]))
