"""Which parameters are blocks, by the types of Python's modules. The rules are those of the C++ class."""
from __future__ import annotations

import fnmatch
import re
import warnings
from typing import Any, Iterable, NamedTuple, Optional

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

_NORMS = tuple(t for t in (_NormBase, nn.GroupNorm, nn.LayerNorm, getattr(nn, "RMSNorm", None)) if t is not None)
_SHIFTS = {"bias", "beta", "shift"}
_GAINS_AND_SHIFTS = {"weight", "gamma", "scale", "gain"} | _SHIFTS
# RMSNorm, norm_2, BatchNormalization; but neither Normal nor Normaliser.
_NAMED_LIKE_NORM = re.compile(r"[Nn]orm(?![a-z])|[Nn]ormali[sz]atio")


class ParameterInfo(NamedTuple):
    """A parameter as a function given for `blocks` sees it."""

    name: str
    parameter: torch.Tensor
    module: Optional[nn.Module]
    local_name: str
    block: bool  # what it would be without the function


def is_channel_wise(parameter: torch.Tensor) -> bool:
    """Whether all sizes but one are 1: [C], or [C, 1, 1] as of a LayerScale."""
    return parameter.dim() > 0 and sum(size != 1 for size in parameter.shape) <= 1


def _is_weight_norm_gain(module: nn.Module, name: str) -> bool:
    if name == "original0" and isinstance(module, nn.utils.parametrize.ParametrizationList):
        return any(type(part).__name__ == "_WeightNorm" for part in module)
    # torch.nn.utils.weight_norm, the older way.
    return name.endswith("_g") and name[:-2] + "_v" in module._parameters


def _rule(module: Optional[nn.Module], name: str, parameter: torch.Tensor):
    """What a parameter of this module is, and whether that makes it a block."""
    dimensions = f"{parameter.dim()}-D"
    if parameter.is_complex():
        return "complex", False
    if module is None or not is_channel_wise(parameter):
        return dimensions, False
    norm = "norm shift" if name in _SHIFTS else "norm gain"
    if isinstance(module, _NORMS):
        return norm, True
    if _is_weight_norm_gain(module, name):
        return "weight-norm gain", True
    if isinstance(module, _ConvNd) and name == "bias":
        return "convolution bias", True
    if isinstance(module, (nn.Linear, nn.Bilinear)) and name == "bias":
        return "linear bias", False
    if isinstance(module, (_ConvNd, nn.Linear, nn.Bilinear)):
        return dimensions, False
    kind = type(module).__name__
    if _NAMED_LIKE_NORM.search(kind) and name in _GAINS_AND_SHIFTS:
        return norm + ", by its type's name", True
    return f"{dimensions}, of a module type without channels ({kind})", False


class _Choice:
    """Parameters chosen by globs or a function."""

    def __init__(self, owner: str, option: str, given: Any) -> None:
        self.option, self.function, self.globs = option, None, []
        if given is None:
            return
        if callable(given):
            self.function = given
            return
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, (list, tuple, set, frozenset)):
            raise ValueError(f"{owner}: {option} takes patterns of names or a function, got {given!r}")
        self.globs = list(given)
        for glob in self.globs:
            if not isinstance(glob, str):
                raise ValueError(f"{owner}: {option} takes patterns of names or a function, got {glob!r}")

    def __bool__(self) -> bool:
        return self.function is not None or bool(self.globs)


class Roles:
    """What the user says of blocks, and the module whose types tell the rest."""

    def __init__(self, owner: str, module: Optional[nn.Module], blocks: Any, first_order: Any, by_module: bool = False) -> None:
        if module is not None and not isinstance(module, nn.Module):
            raise TypeError(f"{owner}: module is a torch.nn.Module, got {type(module).__name__}")
        self.owner = owner
        self.blocks, self.first_order = _Choice(owner, "blocks", blocks), _Choice(owner, "first_order", first_order)
        self.modules = [] if module is None else [("", module)]
        self.places: dict = {}
        self.by_rules = module is None and not self.blocks and not self.first_order and not by_module

    def add_module(self, module: nn.Module, name: str = "") -> None:
        """One more whose types tell what parameters are."""
        self.modules.append((name, module))
        self.by_rules = False

    def _look(self) -> None:
        """Modules grow: a new head may have come since the last time. What is gone is remembered."""
        for start, module in self.modules:
            for prefix, part in module.named_modules(prefix=start):
                for name, parameter in part.named_parameters(recurse=False):
                    self.places[parameter] = (prefix + "." * bool(prefix) + name, name, part)

    def names_of(self, parameters: Iterable[torch.Tensor]) -> dict:
        self._look()
        return {parameter: self.places[parameter][0] for parameter in parameters if parameter in self.places}

    def _infos(self, groups: Iterable[dict]):
        for i, group in enumerate(groups):
            names = group.get("param_names") or [""] * len(group["params"])
            for parameter, given in zip(group["params"], names):
                name, local, module = self.places.get(parameter, (given, given.rpartition(".")[2], None))
                yield name or given, local, module, parameter

    def _says(self, info: ParameterInfo, used: set) -> Optional[bool]:
        """True: a block; False: first-order; None: as the rules say."""
        for choice, meaning in ((self.first_order, False), (self.blocks, True)):
            if choice.function is not None:
                said = choice.function(info)
                if said is None:
                    continue
                if not isinstance(said, (bool, int)):
                    raise ValueError(f"{self.owner}: the function for {choice.option} says True, False or None, got {said!r}")
                if choice is self.blocks or said:
                    return bool(said) == meaning
                continue
            for glob in choice.globs:
                if fnmatch.fnmatchcase(info.name, glob) and (not meaning or is_channel_wise(info.parameter)):
                    used.add(glob)
                    return meaning
        return None

    def assign(self, groups: Iterable[dict], progress: dict, known: int = 0) -> None:
        """Writes into the progress of an optimizer what its parameters are. Of the first `known` those that no module here tells
        of stay what they are: a copy of an optimizer has no module."""
        used: set = set()
        candidates, names, kinds = [], [], []
        self._look()
        stay = known if not self.blocks and not self.first_order else 0
        for i, (name, local, module, parameter) in enumerate(self._infos(groups)):
            if i < stay and module is None and not self.by_rules:
                candidates.append(progress["candidates"][i])
                names.append(progress["names"][i])
                kinds.append(progress["kinds"][i])
                continue
            if self.by_rules:  # tensors, as published: all that are 1-D
                kind = "complex" if parameter.is_complex() else f"{parameter.dim()}-D"
                block = parameter.dim() == 1 and not parameter.is_complex()
            else:
                kind, block = _rule(module, local, parameter)
                said = self._says(ParameterInfo(name, parameter, module, local, block), used)
                if said is not None:
                    if said and parameter.is_complex():
                        raise ValueError(
                            f"{self.owner}: blocks names {name}, which is complex; the curvature of real parameters "
                            "alone is measured"
                        )
                    block = said
                    kind += ", a block by the classifier" if said else ", first-order by the classifier"
            candidates.append(int(block))
            names.append(name)
            kinds.append(kind)
        for glob in [*self.blocks.globs, *self.first_order.globs]:
            if glob not in used:
                warnings.warn(
                    f"{self.owner}: '{glob}' chooses none of the {len(names)} parameters, which are named such as "
                    f"'{next(filter(None, names), '(they have no names; construct from a module)')}'",
                    stacklevel=6,
                )
        progress.update(by_module=not self.by_rules, candidates=candidates, names=names, kinds=kinds)
