"""What the tests of the Python package share."""
import os
import warnings

import pytest
import torch
from torch import nn

import sgdph

torch.set_num_threads(1)
OWN = sorted(sgdph.optimizers)
CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(why):
    """Skips a test aloud; under CI nothing is skipped."""
    (pytest.fail if CI else pytest.skip)(why)


def _without_libuv() -> bool:
    """Whether this torch was built without it, as Debian's is: ranks find each other through the older store then."""
    try:
        torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    except RuntimeError as error:
        return "libuv" in str(error)
    return False


if _without_libuv():
    os.environ["USE_LIBUV"] = "0"


@pytest.fixture(autouse=True)
def clean():
    torch.manual_seed(1)
    yield
    sgdph.remove_fast_operators()


def net(norm="batch", dtype=torch.float64, seed=3):
    """conv-norm-relu-conv(bias)-norm-relu-pool-linear."""
    torch.manual_seed(seed)
    make = {"batch": nn.BatchNorm2d, "group": lambda c: nn.GroupNorm(2, c)}[norm]
    layers = [nn.Conv2d(3, 4, 3, padding=1, bias=False), make(4), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1), make(6), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
    return model.to(dtype)


def batch(step=0, size=8, dtype=torch.float64):
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(size, 3, 6, 6, generator=generator, dtype=dtype), torch.randint(5, (size,), generator=generator)


def loss_of(model, step=0, size=8, dtype=torch.float64):
    x, y = batch(step, size, dtype)
    return nn.functional.cross_entropy(model(x), y)


def train(model, optimizer, steps, first=0, after=lambda: None):
    for step in range(first, first + steps):
        optimizer.zero_grad()
        optimizer.backward(loss_of(model, step))
        optimizer.step()
        after()


def bits(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def make(name, model, **options):
    """An optimizer of any name with a learning rate that is no default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sgdph.optimizers[name](model, lr=options.pop("lr", 0.02), **options)
