"""SGD-PH under DistributedDataParallel, on made-up images:

    torchrun --standalone --nproc-per-node=2 examples/python/ddp.py

Beside a loop with one process there is one line of ours, sgdph.distribute. Gradients go through DDP's own reducer, overlapped
with the backward pass; curvature is averaged over the ranks in one collective a step.
"""
import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import sgdph


def images(count=512, classes=5):
    """Stripes of as many directions as there are classes, in noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (count,), generator=generator)
    angle = labels * torch.pi / classes
    rows, columns = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    waves = torch.sin(rows * torch.cos(angle)[:, None, None] + columns * torch.sin(angle)[:, None, None])
    return TensorDataset(waves[:, None] + 0.5 * torch.randn(count, 1, 16, 16, generator=generator), labels)


def network(classes=5):
    def layer(inside, outside):
        return [nn.Conv2d(inside, outside, 3, 2, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]

    return nn.Sequential(*layer(1, 16), *layer(16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--opt", choices=sorted(sgdph.optimizers), default="sgd-ph")
    parser.add_argument("--lr", type=float, default=0.05)
    arguments = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(0)
    model = DistributedDataParallel(network().to(device), gradient_as_bucket_view=True)
    optimizer = sgdph.optimizers[arguments.opt](model.module, lr=arguments.lr)
    sgdph.distribute(optimizer)

    data = images()
    sampler = DistributedSampler(data, shuffle=True)
    loader, step, epoch = DataLoader(data, batch_size=64 // ranks, sampler=sampler, drop_last=True), 0, 0
    while step < arguments.steps:
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.backward(loss)
            optimizer.step()
            step += 1
            if rank == 0 and (step % 10 == 0 or step == arguments.steps):
                print(f"step {step:4}  loss {loss.item():.4f}", flush=True)
            if step == arguments.steps:
                break
        epoch += 1

    # All ranks have the same parameters, bit for bit.
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    same = torch.tensor(float(torch.equal(flat, first)), device=device)
    dist.all_reduce(same, dist.ReduceOp.MIN)
    if rank == 0:
        print(f"{ranks} ranks agree" if same.item() == 1 else f"{ranks} RANKS DIFFER")
    dist.barrier()  # none leaves while another still talks to it
    # A thread of Gloo's may hold a tensor a moment longer, and to free it while Python ends would abort the process.
    for _ in range(1000):
        if first._use_count() == same._use_count() == 1:
            break
        time.sleep(1e-3)
    dist.destroy_process_group()
    if same.item() != 1:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
