"""Weights go from Python to the lab and back, and predict the same.

    exchange.py path/to/sgdph_exchange [--quick | --slow]

--quick keeps to the small network and a few ways of saving, --slow tries all ways and the large networks; without either all
are tried. The large ones are torchvision's, and are left out where there is none: of PyTorch's wheels for CPUs, torchvision's go with those for CUDA alone.

Every comparison is max |a - b| / max |b| over the class scores and must be at most 1e-6, in float32 as in float64 (the
weights are float32 either way). One thread on both sides, so that sums are taken in the same order.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

try:
    import torch
except ImportError as error:
    print(f"skipped: needs PyTorch ({error})")
    sys.exit(77)
try:
    import torchvision
except ImportError:
    torchvision = None

from torch import nn
from torch.nn import functional as F

TOLERANCE = 1e-6
CLASSES = 10
TOOL = sys.argv[1]
PART = sys.argv[2] if len(sys.argv) > 2 else "--all"
QUICK, SLOW = PART != "--slow", PART != "--quick"
worst = {"float32": 0.0, "float64": 0.0}


class Block(nn.Module):
    """A basic block of ResNet20: a shortcut without parameters."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        half = self.added // 2
        shortcut = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, self.added - half))
        return F.relu(y + shortcut)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        inputs = 16
        for stage, outputs in enumerate((16, 32, 64)):
            first = Block(inputs, outputs, 2 if stage else 1)
            rest = [Block(outputs, outputs, 1) for _ in range(2)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(first, *rest))
            inputs = outputs
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


# The lab's name, form and norm; Python's network; the size of an image.
NETWORKS = {
    "resnet20": (["resnet20", "cifar", "batch"], ResNet20, 32),
}
if torchvision:
    NETWORKS["resnet18"] = (["resnet18", "imagenet", "batch"], torchvision.models.resnet18, 64)
    NETWORKS["vgg11_bn"] = (["vgg11", "imagenet", "batch"], torchvision.models.vgg11_bn, 64)
LISTS = {
    "resnet18": ["resnet18", "imagenet", "batch"],
    "resnet50": ["resnet50", "imagenet", "batch"],
    "vgg11_bn": ["vgg11", "imagenet", "batch"],
    "vgg11": ["vgg11", "imagenet", "none"],
    "vgg19_bn": ["vgg19", "imagenet", "batch"],
    "vgg19": ["vgg19", "imagenet", "none"],
}


def run(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)


def check(condition, text):
    print(("ok   " if condition else "FAIL ") + text, flush=True)
    if not condition:
        sys.exit(1)


def python_network(make):
    return make() if make is ResNet20 else make(num_classes=CLASSES)


def lab_scores(spec, weights, images, dtype, folder):
    """Class scores of the lab's network with these weights, or the message of its refusal."""
    (folder / "images.raw").write_bytes(images.double().numpy().tobytes())
    files = folder / "images.raw", folder / "scores.raw"
    result = run("predict", *spec, CLASSES, weights, dtype, files[0], len(images), images.shape[-1], files[1])
    if result.returncode == 2:
        return result.stderr
    if result.returncode != 0:
        sys.exit(f"the tool failed: {result.stderr}")
    raw = bytearray((folder / "scores.raw").read_bytes())
    return torch.frombuffer(raw, dtype=torch.float64).view(len(images), CLASSES)


def relative(scores, expected):
    return ((scores - expected).abs().max() / expected.abs().max()).item()


def check_sensitive(name, network, images):
    """Agreement means something: each tensor changed by about a hundredth moves the scores well beyond the tolerance."""
    network = network.eval().double()
    least = float("inf")
    with torch.no_grad():
        expected = network(images.double())
        for value in network.state_dict().values():
            if value.is_floating_point():
                kept = value.clone()
                value.mul_(1.01).add_(0.01 * kept.abs().mean() + 1e-3)
                least = min(least, relative(network(images.double()), expected))
                value.copy_(kept)
    network.float()
    check(least > 10 * TOLERANCE, f"{name}: each tensor matters, the least by {least:.2e}")


def compare(what, network, spec, weights, images, folder):
    for dtype in ("float32", "float64"):
        network = network.eval().to(getattr(torch, dtype))
        with torch.no_grad():
            expected = network(images.to(getattr(torch, dtype))).double()
        network.float()
        scores = lab_scores(spec, weights, images, dtype, folder)
        if isinstance(scores, str):
            check(False, f"{what}: {scores}")
        difference = relative(scores, expected)
        worst[dtype] = max(worst[dtype], difference)
        check(difference <= TOLERANCE, f"{what}: {dtype} scores differ by {difference:.2e}")


def wanted(name, quick):
    return QUICK if name == quick else SLOW


def check_lists():
    if not torchvision:
        print("left out, there is no torchvision: names and shapes of its networks")
        return
    for name, spec in LISTS.items():
        if not wanted(name, quick="resnet18"):
            continue
        ours = [line.split() for line in run("list", *spec, 1000).stdout.splitlines()]
        theirs = getattr(torchvision.models, name)().state_dict()
        expected = [[key, *map(str, value.shape)] for key, value in theirs.items()]
        check(ours == expected, f"{name}: {len(expected)} names and shapes, in torchvision's order")


def check_both_ways(folder):
    for name, (spec, make, size) in NETWORKS.items():
        if not wanted(name, quick="resnet20"):
            continue
        images = torch.randn(4, 3, size, size)
        network = python_network(make)
        with torch.no_grad():
            for _ in range(10):
                network(torch.randn(4, 3, size, size))  # moves the running statistics
        weights = folder / "python.pt"
        torch.save(network.state_dict(), weights)
        compare(f"{name}, Python to lab", network, spec, weights, images, folder)
        check_sensitive(name, network, images[:1])

        weights = folder / "lab.pt"
        result = run("save", *spec, CLASSES, weights)
        check(result.returncode == 0, f"{name}: saved by the lab {result.stderr}")
        network = python_network(make)
        network.load_state_dict(torch.load(weights))
        compare(f"{name}, lab to Python", network, spec, weights, images, folder)
        safely = torch.load(weights, weights_only=True)
        same = all(torch.equal(value, safely[key]) for key, value in network.state_dict().items())
        check(same, f"{name}: loads with weights_only")


def check_ways_of_saving(folder):
    """ResNet20 saved in the many ways the field saves."""
    spec = NETWORKS["resnet20"][0]
    network = ResNet20()
    images = torch.randn(2, 3, 32, 32)
    state = network.state_dict()
    joined = torch.cat([value.flatten() for value in state.values() if value.is_floating_point()])
    views, at = OrderedDict(), 0
    for key, value in state.items():
        views[key] = value
        if value.is_floating_point():
            views[key] = joined[at : at + value.numel()].view(value.shape)
            at += value.numel()
    last = ResNet20().to(memory_format=torch.channels_last)
    last.load_state_dict(state)
    settings = argparse.Namespace(lr=0.1, names=["a", {"b": 2**80}], nothing=None)
    optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9)
    network(images).sum().backward()
    optimizer.step()
    network.zero_grad()
    reference = {key: value.clone() for key, value in network.state_dict().items()}
    state = network.state_dict()
    for key, value in views.items():
        value.copy_(reference[key])
    last.load_state_dict(state)
    ways = {
        "views of one storage": views,
        "channels last": last.state_dict(),
        "parameters": OrderedDict(list(network.named_parameters()) + list(network.named_buffers())),
        "a plain dict": dict(state),
        "DataParallel": nn.DataParallel(network).state_dict(),
        "a checkpoint": {"epoch": 3, "model": state, "optimizer": optimizer.state_dict(), "args": settings, "best": None},
        "a wrapped DataParallel": {"state_dict": nn.DataParallel(network).state_dict(), "arch": "resnet20", "acc": 0.5},
        "double": OrderedDict((k, v.double() if v.is_floating_point() else v) for k, v in state.items()),
        "no batch counters": OrderedDict((k, v) for k, v in state.items() if "num_batches" not in k),
    }
    weights = folder / "way.pt"
    if not SLOW:
        ways = {name: ways[name] for name in ("views of one storage", "a wrapped DataParallel")}
    for name, value in ways.items():
        torch.save(value, weights)
        compare(f"resnet20 as {name}", network, spec, weights, images, folder)
    for protocol in (2, 3, 4, 5) if SLOW else ():
        torch.save(state, weights, pickle_protocol=protocol)
        compare(f"resnet20 with pickle protocol {protocol}", network, spec, weights, images, folder)
    check_sensitive("resnet20", network, images)
    # And through the lab: a tensor changed by a hundredth after saving is seen.
    changed = ResNet20()
    changed.load_state_dict(state)
    with torch.no_grad():
        changed.layer2[1].conv1.weight.mul_(1.01)
        expected = changed.eval()(images).double()
    difference = relative(lab_scores(spec, weights, images, "float32", folder), expected)
    check(difference > 10 * TOLERANCE, f"resnet20 with one tensor changed: scores differ by {difference:.2e}")
    halved = ResNet20()
    halved.load_state_dict(state)
    torch.save(halved.half().state_dict(), weights)
    compare("resnet20 as half", halved.float(), spec, weights, images, folder)

    def refused(what, part):
        message = lab_scores(spec, weights, images, "float32", folder)
        check(isinstance(message, str) and part in message and message.count("\n") == 1, f"{what} refused: {message}")

    torch.save(state, weights, _use_new_zipfile_serialization=False)
    refused("the legacy format", "torch >= 1.6")
    torch.save(network, weights)
    refused("a whole network", "state_dict()")
    torch.jit.trace(network.eval(), images).save(str(weights))
    refused("a TorchScript archive", "state_dict()")
    torch.save(Block(16, 32, 2).state_dict(), weights)
    refused("another network", "of another model")


print(f"PyTorch {torch.__version__}")
torch.manual_seed(1)
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as temporary:
    check_ways_of_saving(Path(temporary))
    check_both_ways(Path(temporary))
check_lists()
print(f"largest relative differences: float32 {worst['float32']:.2e}, float64 {worst['float64']:.2e}")
