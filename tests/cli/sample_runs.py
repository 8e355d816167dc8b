"""Folders of runs as `sgdph train` writes them, without training: curves of a known form."""

import json
import math
import random
from pathlib import Path

SETTINGS = {
    "augment": True, "batch_size": 128, "dataset": "cifar100", "data_path": "data/cifar100", "epochs": 20, "form": "cifar",
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


def write_run(folder, opt="sgdm", seed=1, epochs=20, status="finished", top1=None, **settings):
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


def write_inspection(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [{"name": f"layer{i}.bn1.weight", "channels": 16 * i, "off_diagonal_ratio": 0.9 + 0.1 * i, "sign_agreement": 0.6,
               "eigenvalues": {"smallest": -0.01 * i, "largest": 0.5 * i}, "shift_invariant": i == 2} for i in range(1, 5)]
    (folder / "inspect.json").write_text(json.dumps({"model": "resnet8", "dataset": "fashion-mnist", "batch_size": 64,
                                                      "verdict": {"text": "The blocks are not diagonal.", "blocks": 4},
                                                      "blocks": blocks}))
    cells = "".join(f'<rect x="{20 * i}" y="{20 * j}" width="20" height="20" fill="hsl({30 * (i * j % 7)},70%,50%)"/>'
                    for i in range(8) for j in range(8))
    (folder / "inspect-block.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160" width="160" height="160"><script>window.harm=1</script>{cells}</svg>')


HOSTILE = '</script><script>window.harm = 1</script><img src=x onerror="window.harm = 1">&\'`|*'


def write_hostile(folder):
    """Names, settings and machines that try to become markup."""
    run = write_run(Path(folder) / "<script>window.harm = 1<", "sgdm", 1, 3, model=HOSTILE, rebound=HOSTILE, dataset="</title>" + HOSTILE)
    other = write_run(Path(folder) / "b&b <!--", "sgdm", 1, 3, model=HOSTILE, rebound="plain", dataset="</title>" + HOSTILE)
    for folder_ in (run, other):
        log = folder_ / "log.jsonl"
        log.write_text(log.read_text().replace("A CPU <made up> & fast", json.dumps(HOSTILE)[1:-1]))
