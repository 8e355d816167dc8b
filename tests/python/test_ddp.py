"""DistributedDataParallel: W processes do what one does on the joined batch. Loopback, gloo."""
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import sgdph
from conftest import bits, net

STEPS, SHARE = 8, 4


def joined(step, ranks):
    generator = torch.Generator().manual_seed(step)
    size = SHARE * ranks
    return torch.randn(size, 3, 6, 6, generator=generator, dtype=torch.float64), torch.randint(5, (size,), generator=generator)


class Branches(nn.Module):
    """One of two branches is always used; without the other, that has no gradient."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = net("group"), net("group", seed=4)
        self.both = False

    def forward(self, x):
        return self.used(x) + self.unused(x) if self.both else self.used(x)


def model_of(way):
    return Branches() if way in ("unused", "on_one_rank") else net("group")


WAYS = {
    "plain": {},
    "views": dict(gradient_as_bucket_view=True),
    "unused": dict(find_unused_parameters=True),
    "on_one_rank": dict(find_unused_parameters=True),
    "static": dict(static_graph=True),
    "buckets": dict(bucket_cap_mb=0.0001),
    "no_sync": {},
}
OPTIONS = {"sgd-ph": dict(lr=0.05, shift_guard=True), "adahessian": dict(lr=0.05), "lion": dict(lr=1e-3)}


def work(rank, ranks, port, cases, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for way, name in cases:
        model = model_of(way)
        ddp = nn.parallel.DistributedDataParallel(model, **WAYS[way])
        optimizer = sgdph.optimizers[name](model, **OPTIONS[name])
        sgdph.distribute(optimizer)
        train(rank, ranks, way, model, ddp, optimizer)
        torch.save(bits(model), f"{folder}/{way}-{name}-{rank}.pt")
    torch.save(order(ranks), f"{folder}/order-{rank}.pt")
    dist.destroy_process_group()


class Watched(torch.autograd.Function):
    """The identity; its backward pass and that one's own are written down."""

    events: list = []

    @staticmethod
    def forward(ctx, x, event):
        ctx.event = event
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        Watched.events.append(ctx.event)
        return Watched.apply(gradient, "product"), None


def order(ranks):
    """What the third step of a network of several gradient buckets does, one after the other."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.early = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))
            self.late = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 5))

        def forward(self, x):
            return self.late(Watched.apply(self.early(x), "early layers"))

    model = Net().double()
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0001)
    optimizer = sgdph.SGDPH(model, lr=0.05, shift_guard=False, refresh="all")

    def send(state, bucket):
        Watched.events.append("bucket")
        return dist.group.WORLD.allreduce([bucket.buffer()]).get_future().then(lambda sent: sent.value()[0] / ranks)

    reduce = dist.all_reduce
    dist.all_reduce = lambda *given, **more: (Watched.events.append("curvature"), reduce(*given, **more))[1]
    try:
        ddp.register_comm_hook(None, send)
        sgdph.distribute(optimizer)
        for step in range(3):
            Watched.events.clear()
            optimizer.zero_grad()
            optimizer.backward(nn.functional.cross_entropy(ddp(torch.randn(4, 6, dtype=torch.float64)), torch.arange(4)))
            optimizer.step()
    finally:
        dist.all_reduce = reduce
    return list(Watched.events)


def train(rank, ranks, way, model, ddp, optimizer):
    for step in range(STEPS):
        x, y = (part[rank * SHARE : (rank + 1) * SHARE] for part in joined(step, ranks))
        optimizer.zero_grad()
        model.both = way == "on_one_rank" and rank == 0
        if way == "no_sync":
            with ddp.no_sync():
                optimizer.backward(nn.functional.cross_entropy(ddp(x[:2]), y[:2]) / 2)
            optimizer.backward(nn.functional.cross_entropy(ddp(x[2:]), y[2:]) / 2)
        else:
            optimizer.backward(nn.functional.cross_entropy(ddp(x), y))
        optimizer.step()


def spread(rank, ranks, port, folder):
    """How often each block was refreshed, and what the parameters are, after two rounds of five blocks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    model = net("group")
    ddp = nn.parallel.DistributedDataParallel(model)
    optimizer = sgdph.distribute(sgdph.SGDPH(model, lr=0.05, probe="rademacher", refresh="spread"))
    blocks = [entry.parameter for entry in optimizer.partition() if entry.second_order]
    measured = []
    for step in range(6):
        x, y = (part[rank * SHARE : (rank + 1) * SHARE] for part in joined(step, ranks))
        optimizer.zero_grad()
        optimizer.backward(nn.functional.cross_entropy(ddp(x), y))
        optimizer.step()
        measured.append((len(optimizer.last_step.blocks_refreshed), optimizer.last_step.products))
    refreshes = [int(optimizer.state[block]["refreshes"]) for block in blocks]
    torch.save({"refreshes": refreshes, "measured": measured, "parameters": bits(model)}, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_spread_measures_a_block_on_each_rank(tmp_path):
    mp.spawn(spread, (2, free_port(), str(tmp_path)), nprocs=2)
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(found[0]["parameters"], found[1]["parameters"]))
    assert found[0]["refreshes"] == found[1]["refreshes"] == [2] * 5
    assert found[0]["measured"] == [(2, 1), (2, 1), (1, 1)] * 2


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


CASES = {2: [(way, "sgd-ph") for way in WAYS] + [("plain", "adahessian"), ("plain", "lion")], 3: [(way, "sgd-ph") for way in WAYS]}


@pytest.fixture(scope="module")
def left_by(tmp_path_factory):
    """What each rank has left of a name; the processes of a number of ranks serve all its cases."""
    folder = tmp_path_factory.mktemp("ranks")
    for ranks, cases in CASES.items():
        (folder / str(ranks)).mkdir()
        mp.spawn(work, (ranks, free_port(), cases, str(folder / str(ranks))), nprocs=ranks)
    return lambda ranks, name: [torch.load(folder / f"{ranks}/{name}-{rank}.pt") for rank in range(ranks)]


def test_gradients_travel_during_the_backward_pass_and_curvature_once_after_it(left_by):
    for events in left_by(2, "order"):
        early, product = events.index("early layers"), events.index("product")
        assert "bucket" in events[:early] and "bucket" in events[early:product], events
        assert "bucket" not in events[product:] and events.count("curvature") == 1 and events[-1] == "curvature", events


@pytest.mark.filterwarnings("ignore:SGDPH. shift-invariant")
@pytest.mark.parametrize("ranks, way, name", [(ranks, *case) for ranks, cases in CASES.items() for case in cases])
def test_ranks_equal_one_process_on_the_joined_batch(ranks, way, name, left_by):
    found = left_by(ranks, f"{way}-{name}")
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
    model = model_of(way)
    optimizer = sgdph.optimizers[name](model, **OPTIONS[name])
    for step in range(STEPS):
        x, y = joined(step, ranks)
        optimizer.zero_grad()
        if way == "on_one_rank":
            for rank, (part, labels) in enumerate(zip(x.split(SHARE), y.split(SHARE))):
                model.both = rank == 0
                optimizer.backward(nn.functional.cross_entropy(model(part), labels) / ranks)
        else:
            optimizer.backward(nn.functional.cross_entropy(model(x), y))
        optimizer.step()
    difference = max((a - b).abs().max().item() for a, b in zip(found[0], bits(model)))
    print(f"{ranks} ranks, {way}: {difference:.1e}")
    assert difference <= 1e-14


def test_without_a_process_group_it_says_so():
    with pytest.raises(RuntimeError, match="there is no process group; call torch.distributed.init_process_group"):
        sgdph.distribute(sgdph.SGDPH(net()))


def test_the_example_runs_under_torchrun(tmp_path):
    example = [str(Path(__file__).parents[2] / "examples/python/ddp.py"), "--steps", "12"]
    meet = ["--standalone"]
    try:
        socket.gethostbyname("localhost")
    except OSError:  # a bare system without /etc/hosts
        meet = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=test", "--local-addr=127.0.0.1"]
    launch = [sys.executable, "-m", "torch.distributed.run", *meet, "--nproc-per-node=2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(launch + example, capture_output=True, text=True, timeout=300, env=env, cwd=tmp_path)
    out, err, code = done.stdout, done.stderr, done.returncode
    if code != 0 and "build without libuv" in err:  # a torchrun that starts nothing, as Debian 13's: what it would set, by hand
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
        ranks = [
            subprocess.Popen(
                [sys.executable, *example], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                env={**env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank in range(2)
        ]  # fmt: skip
        ends = [rank.communicate(timeout=300) for rank in ranks]
        out, err, code = ends[0][0], ends[0][1] + ends[1][1], max(abs(rank.returncode) for rank in ranks)
    assert code == 0, err[-3000:]
    assert "ranks agree" in out
