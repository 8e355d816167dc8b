"""What training loops need beside an optimizer: many processes, compiled modules, statistics left alone."""
from __future__ import annotations

import atexit
import contextlib
import time
from typing import Any, Callable, Iterator, Optional, TypeVar

import torch
from torch import nn

from ._optimizer import CurvatureOptimizer

AnyOptimizer = TypeVar("AnyOptimizer", bound=torch.optim.Optimizer)


_last: list = []  # of the tensors that were averaged


@atexit.register
def _settle(seconds: float = 1.0) -> None:
    """A thread of Gloo's may hold a tensor a moment longer than the collective takes. If it frees it while the interpreter ends,
    the process is aborted (seen with torch 2.13)."""
    end = time.monotonic() + seconds
    while _last and _last[0]._use_count() > 1 and time.monotonic() < end:
        time.sleep(1e-3)


def distribute(optimizer: AnyOptimizer, process_group: Any = None) -> AnyOptimizer:
    """Averages the curvature over the ranks of a process group, once a step, as DistributedDataParallel does gradients.

    Call it once, after `init_process_group` and in every process, and use `optimizer.backward(loss)` with the loss of the
    DDP-wrapped module. With refresh="spread" each rank measures a block of its own. Optimizers that measure no curvature
    need nothing and are returned as they are.
    """
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            "sgdph.distribute: there is no process group; call torch.distributed.init_process_group before, in a program "
            "started by torchrun"
        )
    ranks = dist.get_world_size(process_group)
    if ranks < 1:
        raise RuntimeError("sgdph.distribute: this process is no member of the process group")

    def average(tensor: torch.Tensor) -> None:
        _last[:] = [tensor]
        dist.all_reduce(tensor, group=process_group)
        tensor.div_(ranks)

    if isinstance(optimizer, CurvatureOptimizer):
        optimizer.set_all_reduce(average if ranks > 1 else None)
        optimizer._distributed = process_group is None
        optimizer.set_ranks(dist.get_rank(process_group), ranks)
    return optimizer


@contextlib.contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Batch norms in training mode normalise by the batch as usual, and leave running statistics and counts alone: for
    another pass over the same images, or the curvature of part of a batch."""
    changed = []
    try:
        for part in module.modules():
            if not isinstance(part, nn.modules.batchnorm._NormBase) or not part.training:
                continue
            instance = isinstance(part, nn.modules.instancenorm._InstanceNorm)
            name, value = ("momentum", 0.0) if instance else ("track_running_stats", False)
            changed.append((part, name, getattr(part, name)))
            setattr(part, name, value)
        yield
    finally:
        for part, name, value in changed:
            setattr(part, name, value)


@contextlib.contextmanager
def _uncompiled(module: nn.Module) -> Iterator[nn.Module]:
    """The module as if neither it, nor a part of it, nor what holds it (DistributedDataParallel) had been compiled."""
    if not any(hasattr(part, "_orig_mod") or part._compiled_call_impl is not None for part in module.modules()):
        raise ValueError(
            "backward_compiled: the module is not compiled; pass what torch.compile returned, or use optimizer.backward(loss)"
        )
    with torch.compiler.set_stance("force_eager"):
        yield getattr(module, "_orig_mod", module)


def backward_compiled(
    optimizer: torch.optim.Optimizer,
    compiled: nn.Module,
    loss_of: Callable[[nn.Module], torch.Tensor],
    *,
    curvature_of: Optional[Callable[[nn.Module], torch.Tensor]] = None,
    scaler: Any = None,
) -> torch.Tensor:
    """Gradients from a compiled module, and curvature from the uncompiled one, through which second derivatives go.

        compiled = torch.compile(model)
        loss = sgdph.backward_compiled(optimizer, compiled, lambda m: criterion(m(x), y))
        optimizer.step()

    The function is called with the module to use. `curvature_of`, where it is given, is for the curvature alone, of part
    of the batch say: lambda m: criterion(m(x[:32]), y[:32]). Running statistics are the compiled pass's alone. `scaler`: a
    GradScaler for the gradients. Returns the loss, unscaled.
    """
    if isinstance(optimizer, CurvatureOptimizer):
        with _uncompiled(compiled) as plain:
            if optimizer.curvature_due:
                with frozen_statistics(plain):
                    optimizer.update_curvature((curvature_of or loss_of)(plain))
    loss = loss_of(compiled)
    (loss if scaler is None else scaler.scale(loss)).backward()
    return loss.detach()
