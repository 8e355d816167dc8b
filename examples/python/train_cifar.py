"""Trains a ResNet of torch.nn layers on CIFAR-100 with any optimizer of sgdph, or torch.optim.SGD:

    python examples/python/train_cifar.py --data-path cifar-100-binary --opt sgd-ph --epochs 10

--data-path is the folder of the binary version (train.bin, test.bin); --data-path made-up trains on random colours instead.
"""
import argparse
import sys
import time
from pathlib import Path

import torch
from torch import nn

import sgdph

RECORD, MEAN, STD = 2 + 3072, torch.tensor([0.507, 0.487, 0.441]), torch.tensor([0.267, 0.256, 0.276])


def fail(text):
    print("train_cifar.py:", text, file=sys.stderr)
    sys.exit(2)


def read(path, limit):
    """Images as float tensors and fine labels; made up, they are noise around a colour for each class."""
    if str(path.parent) == "made-up":
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(100, (limit or 2000,), generator=generator)
        colours = torch.rand(100, 3, 1, 1, generator=generator)
        return colours[labels] + 0.1 * torch.randn(len(labels), 3, 32, 32, generator=generator), labels
    if not path.is_file():
        fail(f"there is no {path}; --data-path takes the folder of CIFAR-100's binary version (sgdph data fetch cifar100), or made-up")
    data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    if len(data) == 0 or len(data) % RECORD:
        fail(f"{path} has {len(data)} bytes, which are no records of {RECORD}; is it CIFAR-100's binary version?")
    data = data.view(-1, RECORD)[: limit or None]
    images = data[:, 2:].view(-1, 3, 32, 32).float().div_(255)
    return (images - MEAN.view(1, 3, 1, 1)) / STD.view(1, 3, 1, 1), data[:, 1].long()


def augment(images):
    """Pad by 4, crop, flip: one draw for each image."""
    padded = nn.functional.pad(images, (4, 4, 4, 4))
    rows = (torch.randint(9, (len(images), 1)) + torch.arange(32))[:, None, :, None]
    columns = torch.randint(9, (len(images), 1)) + torch.arange(32)
    columns = torch.where(torch.rand(len(images), 1) < 0.5, columns.flip(1), columns)[:, None, None, :]
    return padded[torch.arange(len(images))[:, None, None, None], torch.arange(3)[None, :, None, None], rows, columns]


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        change = stride != 1 or inside != outside
        self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)) if change else nn.Identity()

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


def resnet(width):
    stem = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    stages = [Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 100))


def bar(done, total, began, text):
    if sys.stderr.isatty():
        left = (time.time() - began) * (total - done) / done
        print(f"\r[{'#' * (30 * done // total):30}] {done}/{total}  {text}  {left:4.0f} s left ", end="", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-path", type=Path, default=Path("data/cifar-100-binary"))
    parser.add_argument("--opt", choices=["sgd", *sorted(sgdph.optimizers)], default="sgd-ph")
    parser.add_argument("--lr", type=float, help="default: the optimizer's own, 0.1 for sgd")
    parser.add_argument("--wd", type=float, default=5e-4, help="weight decay")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("-b", "--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=16, help="channels of the first of three stages of one block each")
    parser.add_argument("--limit", type=int, default=0, help="use that many images only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    (images, labels), (test_images, test_labels) = read(a.data_path / "train.bin", a.limit), read(a.data_path / "test.bin", a.limit)
    model = resnet(a.width).to(a.device)
    options = {"weight_decay": a.wd, **({} if a.lr is None else {"lr": a.lr})}
    if a.opt == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9, **options})
    else:
        optimizer = sgdph.optimizers[a.opt](model, **options)
        sgdph.install_fast_operators()  # cheap second derivatives on CPUs
    steps = max(1, len(images) // a.batch_size)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, a.epochs * steps)
    for epoch in range(1, a.epochs + 1):
        model.train()
        began, total, order = time.time(), 0.0, torch.randperm(len(images))
        for step, chosen in enumerate(order.split(a.batch_size)[:steps], 1):
            x, y = augment(images[chosen]).to(a.device), labels[chosen].to(a.device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward() if a.opt == "sgd" else optimizer.backward(loss)
            optimizer.step()
            scheduler.step()
            total += loss.item()
            bar(step, steps, began, f"epoch {epoch}  loss {total / step:.4f}")
        model.eval()
        with torch.no_grad():
            right = sum((model(x.to(a.device)).argmax(1).cpu() == y).sum().item() for x, y in zip(test_images.split(500), test_labels.split(500)))
        start = "\r\033[K" if sys.stderr.isatty() else ""
        print(f"{start}epoch {epoch:3}  loss {total / steps:.4f}  test {100 * right / len(test_labels):.2f} %  {time.time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
