"""What a training step of SGD-PH costs in Python, relative to torch.optim.SGD: a small ResNet of plain torch.nn layers.

    python bench/train_step_python.py [--rounds N] [--batch N]

Every way has a model of its own. They take turns step by step, so that whatever else the machine does meets all of them, and
whole rotations of the blocks are counted: a step's cost depends on the block that is due. The first rotation, in which the
shift guard looks, is left out. The mean is what a user pays; the median of paired ratios is less moved by a busy machine.
"""
import argparse
import statistics
import time
import warnings

import torch
from torch import nn

import sgdph


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.shortcut = nn.Sequential()
        if inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        hidden = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(hidden)) + self.shortcut(x))


def resnet(width=16):
    torch.manual_seed(0)
    stem = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    stages = [Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 100))


class Way:
    def __init__(self, name, fast, make, backward):
        self.name, self.fast, self.model = name, fast, resnet()
        self.optimizer = make(self.model)
        self.backward = backward
        self.cpu, self.wall = [], []

    def step(self, x, y, counts):
        (sgdph.install_fast_operators if self.fast else sgdph.remove_fast_operators)()
        cpu, wall = time.process_time(), time.perf_counter()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.backward(self.optimizer, loss)
        self.optimizer.step()
        if counts:
            self.cpu.append(time.process_time() - cpu)
            self.wall.append(time.perf_counter() - wall)


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.01, 0.9)


def ours(model):
    return sgdph.SGDPH(model, lr=0.01)


def through_optimizer(optimizer, loss):
    optimizer.backward(loss)


def through_graph(optimizer, loss):
    loss.backward(create_graph=True)


def all_products(blocks):
    """Gradients, and the products of all blocks at once; nothing is stepped."""

    def run(optimizer, loss):
        parameters = optimizer.param_groups[0]["params"]
        found = dict(zip(parameters, torch.autograd.grad(loss, parameters, create_graph=True)))
        chosen = [parameters[i] for i in blocks]
        torch.autograd.grad([found[p] for p in chosen], chosen, [torch.ones_like(p) for p in chosen])

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rotations of the blocks that are counted (default 3)")
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch's, of create_graph
    ways = [
        Way("torch.optim.SGD", False, sgd, lambda o, loss: loss.backward()),
        Way("SGDPH.backward, stock operators", False, ours, through_optimizer),
        Way("SGDPH.backward, installed", True, ours, through_optimizer),
        Way("loss.backward(create_graph=True), stock", False, ours, through_graph),
        Way("the same, installed", True, ours, through_graph),
    ]
    partition = ways[1].optimizer.partition()
    blocks = partition.blocks
    places = [i for i, entry in enumerate(partition) if entry.second_order]
    ways += [Way("", fast, sgd, all_products(places)) for fast in (False, True)]
    generator = torch.Generator().manual_seed(1)
    for step in range((1 + arguments.rounds) * blocks + 2):
        x = torch.randn(arguments.batch, 3, 32, 32, generator=generator)
        y = torch.randint(100, (arguments.batch,), generator=generator)
        for i in range(len(ways)):
            ways[(step + i) % len(ways)].step(x, y, counts=step >= blocks + 2)
    base = ways[0]
    print(f"{blocks} blocks, {len(base.cpu)} steps each, batch {arguments.batch}, one thread; CPU time, wall time in brackets\n")
    print("| | CPU time, mean | / SGD, mean | median of paired ratios |\n|---|---|---|---|")
    for way in ways[:-2]:
        mean, wall = statistics.mean(way.cpu) / statistics.mean(base.cpu), statistics.mean(way.wall) / statistics.mean(base.wall)
        pair = [statistics.median(a / b for a, b in zip(mine, theirs)) for mine, theirs in ((way.cpu, base.cpu), (way.wall, base.wall))]
        print(f"| {way.name} | {1000 * statistics.mean(way.cpu):.1f} ms | {mean:.2f} ({wall:.2f}) | {pair[0]:.2f} ({pair[1]:.2f}) |")
    stock, installed = (1000 * statistics.mean(way.cpu) for way in ways[-2:])
    print(
        f"| forward, gradient and the product of all blocks at once, stock / installed | {stock:.1f} / {installed:.1f} ms "
        f"| {stock / installed:.2f} times faster | |"
    )


if __name__ == "__main__":
    main()
