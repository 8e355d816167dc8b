"""The Python side of train_step_bench: a bare PyTorch loop over CIFAR-form ResNet18 with SGDM.

Reads a number of steps per line from standard input, trains so many, and answers with the seconds they took.
"""

import sys
import time

import torch
import torchvision

batch, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)
model = torchvision.models.resnet18(num_classes=10)
model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
model.maxpool = torch.nn.Identity()
images = torch.randn(8 * batch, 3, 32, 32)
labels = torch.randint(0, 10, (8 * batch,))
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)


def step():
    chosen = torch.randperm(len(labels))[:batch]
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
    optimizer.step()


for line in sys.stdin:
    started = time.perf_counter()
    for _ in range(int(line)):
        step()
    print(time.perf_counter() - started, flush=True)
