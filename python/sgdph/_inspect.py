"""How diagonal the Hessian blocks of a model are, by brute force."""
from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional

import torch
from torch import nn

from . import _core  # type: ignore[attr-defined]
from ._roles import Roles
from ._tools import frozen_statistics


class InspectedBlock(NamedTuple):
    """H is the block's Hessian, of which `rows` holds those of `channels`; d its diagonal, r its row sums."""

    name: str
    size: int
    channels: torch.Tensor
    rows: torch.Tensor
    row_sums: torch.Tensor  # of all channels

    @property
    def diagonal(self) -> torch.Tensor:
        return self.rows[torch.arange(len(self.channels)), self.channels]

    @property
    def off_diagonal(self) -> float:
        """Frobenius norm of H without d relative to that of d; 0 for a diagonal block."""
        rest = self.rows.clone()
        rest[torch.arange(len(self.channels)), self.channels] = 0
        return _ratio(rest.norm().item(), self.diagonal.norm().item())

    @property
    def ratio(self) -> float:
        """The median over channels of |r| / |d|; channels whose d is zero are left out."""
        alive = self.diagonal != 0
        found = self.row_sums[self.channels][alive].abs() / self.diagonal[alive].abs()
        return found.median().item() if found.numel() else float("nan")

    @property
    def cosine(self) -> float:
        sums = self.row_sums[self.channels]
        return _ratio(torch.dot(sums, self.diagonal).item(), (sums.norm() * self.diagonal.norm()).item())

    @property
    def same_sign(self) -> float:
        """The share of channels on which r has the sign of d."""
        alive = self.diagonal != 0
        same = torch.sign(self.row_sums[self.channels][alive]) == torch.sign(self.diagonal[alive])
        return same.double().mean().item() if same.numel() else float("nan")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


class Inspection(List[InspectedBlock]):
    """The blocks inspected: a table when printed, a picture by `plot`."""

    def __str__(self) -> str:
        head = ["block", "channels", "off diagonal", "|r|/|d|", "cosine", "same sign"]
        rows = [
            [b.name, f"{len(b.channels)} of {b.size}" if len(b.channels) < b.size else str(b.size), f"{b.off_diagonal:.3g}",
             f"{b.ratio:.3g}", f"{b.cosine:.3f}", f"{100 * b.same_sign:.0f} %"] for b in self
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        lines = ["  ".join(f"{c:{'<' if i == 0 else '>'}{w}}" for i, (c, w) in enumerate(zip(row, widths))) for row in [head, *rows]]
        count = sum(not b.off_diagonal < 0.1 for b in self)
        lines.append(f"{count} of {len(self)} blocks are not diagonal: what lies beside the diagonal is a tenth of it or more")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, block: Optional[str] = None, ax: Any = None) -> Any:
        """A picture of one block with matplotlib, by default the one with the median ratio; returns the figure."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("Inspection.plot needs matplotlib, which is not installed; the table is print(inspection)") from None
        if not self:
            raise ValueError("Inspection.plot: no block was inspected")
        if block is None:
            chosen = sorted(self, key=lambda one: one.off_diagonal)[len(self) // 2]
        else:
            named = [one for one in self if one.name == block]
            if not named:
                raise ValueError(f"Inspection.plot: there is no block '{block}'; there are {', '.join(b.name for b in self)}")
            chosen = named[0]
        figure = ax.figure if ax is not None else plt.figure(figsize=(6, 5))
        ax = ax if ax is not None else figure.add_subplot()
        shown = chosen.rows[:, chosen.channels]
        limit = shown.abs().max().item() or 1.0
        image = ax.imshow(shown.numpy(), cmap="PuOr_r", vmin=-limit, vmax=limit)
        figure.colorbar(image, ax=ax, label="second derivative")
        every = -(-len(chosen.channels) // 8)
        for set_ticks in (ax.set_xticks, ax.set_yticks):  # the block's own numbers, also where some channels alone were measured
            set_ticks(range(0, len(chosen.channels), every), chosen.channels[::every].tolist())
        ax.set_title(f"{chosen.name}: off diagonal {chosen.off_diagonal:.2g} of the diagonal")
        ax.set_xlabel("channel")
        ax.set_ylabel("channel")
        return figure


def inspect(
    model: nn.Module,
    loss_fn: Callable[..., torch.Tensor],
    batch: Any,
    *,
    blocks: Any = None,
    first_order: Any = None,
    max_channels: Optional[int] = 64,
) -> Inspection:
    """How diagonal are the Hessian blocks of this model, on this batch? The paper takes a block's row sums for its diagonal.

    batch: a pair of inputs and targets, for `loss_fn(model(inputs), targets)`; anything else, for `loss_fn(model, batch)`.
    A row of a block costs one Hessian-vector product; of blocks with more channels than `max_channels` (None: no limit) that
    many rows are measured, spread over the block. Parameters, gradients and running statistics stay as they are.
    """
    if max_channels is not None and max_channels < 1:
        raise ValueError(f"inspect: max_channels must be at least 1, got {max_channels}")
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    group = {"params": [p for _, p in named], "param_names": [name for name, _ in named]}
    roles: dict = {}
    Roles("inspect", model, blocks, first_order).assign([group], roles)
    chosen = [pair for pair, block in zip(named, roles["candidates"]) if block]
    if not chosen:
        raise ValueError("inspect: the model has no blocks; name some by blocks=[...]")
    with torch.enable_grad(), frozen_statistics(model):
        pair = isinstance(batch, (tuple, list)) and len(batch) == 2
        loss = loss_fn(model(batch[0]), batch[1]) if pair else loss_fn(model, batch)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise ValueError("inspect: loss_fn must return a scalar tensor")
        gradients = torch.autograd.grad(loss, [p for _, p in chosen], create_graph=True, allow_unused=True)
    found = Inspection()
    for (name, parameter), gradient in zip(chosen, gradients):
        if gradient is None:
            continue
        size = parameter.numel()
        count = size if max_channels is None else min(size, max_channels)
        channels = torch.linspace(0, size - 1, count).round().long()

        def product(probe: torch.Tensor) -> torch.Tensor:
            probe = probe.reshape(parameter.shape).to(parameter)
            return _core.hessian_vector_product([gradient], [parameter], [probe], True)[0].flatten().double().cpu()

        rows = torch.stack([product(torch.eye(size, dtype=torch.float64)[i]) for i in channels])
        found.append(InspectedBlock(name, size, channels, rows, product(torch.ones(size, dtype=torch.float64))))
    return found
