"""The golden trajectories of the authors' code, replayed through Python: bit for bit what the C++ library does."""
import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

import sgdph
from conftest import cannot

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/netA.json").read_text())
SETTINGS = [name for name, entry in GOLDEN.items() if name != "problem" and entry["optimizer"] not in ("sgd", "adam", "adamw")]


def tensor(array):
    return torch.tensor(array["data"], dtype=torch.float64).view(array["shape"])


class NetA(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6, 5)
        self.double()

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


def make(golden, parameters):
    hyper, kind = dict(golden["hyper"]), golden["optimizer"]
    if kind == "sgdph":
        hyper["lr_so"], hyper["hessian_momentum"] = hyper.pop("tau"), hyper["momentum"]
        return sgdph.SGDPH(parameters, rule="reference", shift_guard=False, **hyper)
    if kind == "alg1":
        names = {"tau": "lr", "tau_SO": "lr_so", "b": "momentum", "a": "hessian_momentum", "eps": "eps", "eta": "weight_decay"}
        options = {ours: hyper[theirs] for theirs, ours in names.items()}
        if hyper["first_order_last_1d"]:
            parameters = [{"params": parameters[:-1]}, {"params": parameters[-1:], "second_order": False}]
        return sgdph.SGDPH(parameters, rule="paper", shift_guard=False, **options)
    options = {key: value for key, value in hyper.items() if value is not None}
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    known = {option["name"] for option in sgdph.optimizers[kind]._info["options"]}
    return sgdph.optimizers[kind](parameters, **{key: value for key, value in options.items() if key in known})


def replay(setting, between=lambda step, optimizer, make_another: optimizer):
    """The parameters after every step, by name. `between` says which optimizer takes the next step."""
    problem, golden = GOLDEN["problem"], GOLDEN[setting]
    model = NetA()
    named = dict(model.named_parameters())
    with torch.no_grad():
        for entry in problem["initial_params"]:
            named[entry["name"]].copy_(tensor(entry))
    inputs, labels = tensor(problem["inputs"]), tensor(problem["labels"]).long()
    order = [named[name] for name in golden["param_names"]]
    places = {parameter: i for i, parameter in enumerate(order)}

    def make_one():
        made = make(golden, order)
        if golden["optimizer"] == "adahessian":
            made.set_probe_source(lambda p: tensor(problem["rademacher"][step - 1][places[p]]))
        return made

    optimizer = make_one()
    for step in range(1, golden["steps"] + 1):
        for group in optimizer.param_groups:
            group["lr"] = golden["lr_per_step"][step - 1]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[step - 1]), labels[step - 1])
        optimizer.backward(loss)
        optimizer.step()
        assert abs(loss.item() - golden["loss"][step - 1]) <= 1e-11
        yield step, named, golden["param_names"]
        optimizer = between(step, optimizer, make_one)


def replay_in_cpp(*words):
    """The bits of all parameters by setting and step."""
    program = os.environ.get("SGDPH_GOLDEN_REPLAY")
    if not program:
        cannot("SGDPH_GOLDEN_REPLAY names no program (build with -C cmake.define.SGDPH_PYTHON_TESTS=ON)")
    lines = subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout.split("\n")
    return {(setting, int(step)): data for setting, step, data in (line.split() for line in lines if line)}


@pytest.fixture(scope="module")
def in_cpp():
    return replay_in_cpp()


def bits_of(named, names):
    return b"".join(named[name].detach().contiguous().numpy().tobytes() for name in names).hex()


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_trajectory_is_the_authors_to_the_tolerance_of_the_golden_file(setting):
    snapshots = {s["step"]: (s, a) for s, a in zip(GOLDEN[setting]["snapshots"], GOLDEN[setting]["sensitivity"]["amplification"])}
    checked = 0
    for step, named, _ in replay(setting):
        if step in snapshots:
            snapshot, amplification = snapshots[step]
            for entry in snapshot["params"]:
                difference = (named[entry["name"]].detach() - tensor(entry)).abs().max().item()
                assert difference <= 1e-12 * max(1.0, amplification), entry["name"]
                checked += 1
    assert checked == len(GOLDEN[setting]["param_names"]) * len(snapshots)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_trajectory_has_the_bits_of_the_cpp_library(setting, in_cpp):
    for step, named, names in replay(setting):
        assert bits_of(named, names) == in_cpp[setting, step], f"step {step}"


def test_archives_of_the_cpp_class_are_continued_with_its_bits(in_cpp, tmp_path):
    replay_in_cpp("save", 7, tmp_path)

    def between(step, optimizer, make_another):
        if step != 7:
            return optimizer
        other = make_another()
        other.load_archive(tmp_path / f"{setting}.pt")
        assert other.state_dict()["state"], "something was read"
        return other

    for setting in SETTINGS:
        for step, named, names in replay(setting, between):
            assert bits_of(named, names) == in_cpp[setting, step], f"{setting}, step {step}"


def test_the_cpp_class_continues_our_archives_with_the_same_bits(in_cpp, tmp_path):
    def between(step, optimizer, make_another):
        if step == 7:
            optimizer.save_archive(tmp_path / f"{setting}.pt")
        return optimizer

    for setting in SETTINGS:
        for _ in replay(setting, between):
            pass
    assert replay_in_cpp("load", 7, tmp_path) == in_cpp


def test_all_trajectories_of_our_optimizers_are_there():
    assert len(SETTINGS) == sum(e["optimizer"] not in ("sgd", "adam", "adamw") for n, e in GOLDEN.items() if n != "problem") > 10
