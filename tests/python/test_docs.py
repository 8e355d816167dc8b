"""What the documents and examples show, run."""
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import sgdph

ROOT = Path(__file__).parents[2]


def snippets(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)


def test_the_loops_of_the_page_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = snippets("docs/python.md")
    assert len(found) >= 10
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code in found:
            exec(compile(code, "docs/python.md", "exec"), names)
    assert "blocks among" in capsys.readouterr().out


def test_the_readme_has_the_loop():
    code = "\n".join(snippets("README.md"))
    assert "import sgdph" in code and "optimizer.backward(loss)" in code
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    loader = [(torch.randn(3, 4), torch.randint(4, (3,))) for _ in range(2)]
    exec(code, {"model": model, "loader": loader, "criterion": torch.nn.CrossEntropyLoss()})


def run(*arguments):
    command = [sys.executable, *map(str, arguments)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, cwd=ROOT)


@pytest.mark.parametrize("name", ["sgd", "sgd-ph"])
def test_the_example_on_cifar_trains(name):
    example = ROOT / "examples/python/train_cifar.py"
    assert len(example.read_text().splitlines()) < 120
    done = run(example, "--data-path", "made-up", "--opt", name, "--epochs", 2, "--limit", 256, "--width", 4, "-b", 64)
    assert done.returncode == 0, done.stderr
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert len(losses) == 2 and losses[1] < losses[0]


def test_the_example_reads_the_binary_version_and_says_what_is_wrong_with_it(tmp_path):
    example = ROOT / "examples/python/train_cifar.py"
    done = run(example, "--data-path", tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "there is no" in done.stderr and "--data-path" in done.stderr
    (tmp_path / "train.bin").write_bytes(b"12345")
    done = run(example, "--data-path", tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "5 bytes" in done.stderr
    records = torch.randint(0, 100, (40, 3074), dtype=torch.uint8).numpy().tobytes()
    for part in ("train.bin", "test.bin"):
        (tmp_path / part).write_bytes(records)
    done = run(example, "--data-path", tmp_path, "--epochs", 1, "--width", 4, "-b", 20, "--opt", "lion")
    assert done.returncode == 0 and " test " in done.stdout, done.stderr


def test_the_benchmark_prints_its_table():
    done = run(ROOT / "bench/train_step_python.py", "--rounds", 1, "--batch", 2)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ") and " ms " in line]
    assert len(rows) == 6 and rows[0].startswith("| torch.optim.SGD | ") and "1.00 (1.00)" in rows[0]
    assert "product of all blocks at once" in rows[5] and "times faster" in rows[5]


def test_inspect_tells_a_diagonal_block_from_one_that_is_not():
    torch.manual_seed(0)
    x = torch.randn(30, 4, dtype=torch.float64)
    diagonal = torch.nn.LayerNorm(4).double()
    report = sgdph.inspect(diagonal, lambda out, y: (out**4).mean() + y, (x, 0.0))
    assert [b.name for b in report] == ["weight", "bias"] and report[0].off_diagonal < 1e-12 and report[0].same_sign == 1
    mixed = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)).double()
    before = [p.clone() for p in mixed.parameters()]
    report = sgdph.inspect(mixed, torch.nn.functional.cross_entropy, (x, torch.arange(30) % 4), max_channels=3)
    assert report[0].off_diagonal > 0.1 and "not diagonal" in str(report) and "3 of 4" in str(report)
    # Against the whole Hessian.
    weight = mixed[0].weight

    def loss(w):
        out = torch.func.functional_call(mixed, {"0.weight": w}, (x,))
        return torch.nn.functional.cross_entropy(out, torch.arange(30) % 4)

    whole = torch.autograd.functional.hessian(loss, weight.detach())
    assert torch.allclose(report[0].rows, whole[report[0].channels], atol=1e-12)
    assert torch.allclose(report[0].row_sums, whole.sum(1), atol=1e-12)
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, mixed.parameters()))
    with pytest.raises(ValueError, match="has no blocks"):
        sgdph.inspect(torch.nn.Linear(2, 2), torch.nn.functional.mse_loss, (torch.ones(1, 2), torch.ones(1, 2)))
    with pytest.raises(ValueError, match="max_channels"):
        sgdph.inspect(mixed, torch.nn.functional.cross_entropy, (x, torch.arange(30) % 4), max_channels=0)


def test_inspect_draws_a_picture_where_matplotlib_is():
    x = torch.randn(6, 4)
    model = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 4))
    report = sgdph.inspect(model, torch.nn.functional.cross_entropy, (x, torch.arange(6) % 4))
    try:
        import matplotlib
    except ImportError:
        with pytest.raises(ImportError, match="needs matplotlib"):
            report.plot()
        return
    matplotlib.use("Agg")
    assert report.plot().axes and "0.bias" in report.plot("0.bias").axes[0].get_title()
    some = sgdph.inspect(model, torch.nn.functional.cross_entropy, (x, torch.arange(6) % 4), max_channels=2)
    assert [label.get_text() for label in some.plot().axes[0].get_xticklabels()] == ["0", "3"]
    with pytest.raises(ValueError, match="there is no block 'x'"):
        report.plot("x")
