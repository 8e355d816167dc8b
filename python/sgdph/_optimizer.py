"""The classes of torch.optim kind over the C++ optimizers. `param_groups` is the truth; the core follows it."""
from __future__ import annotations

import contextlib
import difflib
import math
import os
import re
import sys
import tempfile
import warnings
import weakref
from collections import defaultdict
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import torch

from . import _core  # type: ignore[attr-defined]
from ._roles import Roles

# Beside options, what a group may have: torch's own keys, and those of its schedulers.
_GROUP_KEYS = {"params", "param_names", "progress", "initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr", "name"}
# In the first group, as it was when it was saved last: whose state it is, and what belongs to no single parameter. It stays
# there since torch.distributed.checkpoint, where it flattens, looks for the keys of the groups as they are.
_PROGRESS = "progress"
_PRESENT = "present"  # in a parameter's state: which tensors there are, the others being placeholders


def _words(text: str) -> str:
    """A message of the core as Python writes it."""
    text = re.sub(r"BackwardOptions\(\)\.", "", text)
    text = re.sub(r"\b(\w+)\((true|false)\)", lambda m: f"{m[1]}={m[2].capitalize()}", text)
    text = text.replace("inputs(...)", "inputs=...").replace("use NoGradGuard", "use torch.no_grad()")
    text = re.sub(r"\bRule::(\w+)", lambda m: f'rule="{m[1].lower()}"', text)
    return re.sub(r"(?<=\w)::(?=\w)", ".", text)


def _notify(text: str) -> None:
    """A notice of the core as a warning, at the line of the user's that led to it."""
    frame, level = sys._getframe(1), 2
    ours = (os.path.dirname(__file__), os.path.dirname(torch.__file__))
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(_words(text), UserWarning, stacklevel=level)


@contextlib.contextmanager
def _python_words(name: str, label: str = "sgdph"):
    """Messages of the core that reach the user are Python's, and name the class."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        text = said = str(error)
        if re.match(re.escape(label) + "[:,]", text):
            said = name + text[len(label) :]
        if not said.startswith(name) or _words(said) == text:
            raise
        raise type(error)(_words(said)) from None


class PartitionEntry(NamedTuple):
    """What a parameter is, and why."""

    name: str
    parameter: torch.Tensor
    group: int
    second_order: bool
    reason: str


class Partition(List[PartitionEntry]):
    """Which parameters are blocks (second-order), and why: a list with a line for each when printed."""

    @property
    def blocks(self) -> int:
        return sum(entry.second_order for entry in self)

    def __str__(self) -> str:
        width = max((len(entry.name) for entry in self), default=0)
        kinds = {True: "second-order", False: "first-order "}
        lines = [f"{entry.name:{width}}  {kinds[entry.second_order]}  {entry.reason}" for entry in self]
        return "\n".join([*lines, f"{self.blocks} blocks among {len(self)} parameters"])

    __repr__ = __str__


class RefreshedBlock(NamedTuple):
    name: str
    parameter: torch.Tensor
    estimate: torch.Tensor


class StepSummary(SimpleNamespace):
    """What a step did: step, applied, blocks_refreshed, products, non_finite, rejected_estimates."""

    step: int
    applied: bool
    blocks_refreshed: List[RefreshedBlock]
    products: int
    non_finite: int
    rejected_estimates: int


class Optimizer(torch.optim.Optimizer):
    """What all optimizers of sgdph share beside torch.optim's interface."""

    _info: dict = {}
    _kind = ""  # the class of the catalogue, by which messages and states go in classes derived from it as well

    if TYPE_CHECKING:  # as every class of the catalogue

        def __init__(self, params: Any, lr: Union[float, torch.Tensor] = ..., **options: Any) -> None: ...

    def _setup(self, params, options: dict, module=None, blocks=None, first_order=None) -> None:
        self._core: Any = None
        self._view: Any = None  # what `state` showed last
        self._shown: dict = {}  # the same, as it was then
        if isinstance(params, torch.nn.Module):
            if module is None:
                module = params
            params = params.named_parameters()
        elif params is None or isinstance(params, (str, bytes, int, float)):
            raise TypeError(
                f"{type(self).__name__} takes a module, parameters, named parameters or groups, got {params!r}"
            )
        self._roles = Roles(type(self).__name__, module, blocks, first_order)
        self._had_module = not self._roles.by_rules
        defaults = {option["name"]: option["default"] for option in self._info["options"]}
        self._refuse_unknown(options, defaults, own_keys=False)
        defaults.update(options)
        super().__init__(params, defaults)
        self._build()
        self._assign_roles()

    def _refuse_unknown(self, given: Iterable[str], known: Iterable[str], own_keys: bool) -> None:
        """Options there are not. A group may have keys of the user's own, unless they look like a slip."""
        name, known = type(self).__name__, list(known)
        for key in given:
            if key in known or (own_keys and key in _GROUP_KEYS):
                continue
            near = [name for name in known if _is_slip(str(key), name)] if own_keys else difflib.get_close_matches(str(key), known, n=1)
            if own_keys and not near:
                continue
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{name}: there is no option '{key}'; {hint}")

    def _build(self) -> None:
        for i, group in enumerate(self.param_groups):
            for j, parameter in enumerate(group["params"]):
                if torch.nn.parameter.is_lazy(parameter):
                    raise ValueError(
                        f"{type(self).__name__}, group {i}: parameter {j} has no shape yet; run the model once before"
                    )
        with _python_words(self._kind, self._info["label"]):
            self._core = _core.Core(self._info["name"], self.param_groups)
        self._sync()

    def _sync(self) -> None:
        """Brings the core in line with `param_groups`."""
        with _python_words(self._kind):
            self._core.sync(self.param_groups)
            if self._was_edited():
                ours = {parameter for group in self.param_groups for parameter in group["params"]}
                states = [(p, _without_placeholders(fields)) for p, fields in self._view.items() if fields and p in ours]
                self._view = None
                self._core.restore(states, None)

    def _assign_roles(self, known: int = 0) -> None:
        """Tells the core what the parameters are; of interest to optimizers with blocks. A copy knows no module: there
        new parameters go by their shape."""
        if not self._info["has_blocks"] or self._roles is None:
            return
        progress = self._core.progress()
        self._roles.assign(self.param_groups, progress, known)
        self._core.restore(self._core.states(), progress)

    # --- torch.optim's interface ------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict) -> None:
        """As torch's. "params" may be a module, whose types then tell which of its parameters are blocks; a group of parameters
        of the module the optimizer was made from, or of what has been put into it since, goes by that."""
        if isinstance(param_group, dict) and isinstance(param_group.get("params"), torch.nn.Module):
            module = param_group["params"]
            param_group = {**param_group, "params": list(module.parameters())}
            if self._roles is not None:
                self._roles.add_module(module)
        if isinstance(param_group, dict):
            self._refuse_unknown(param_group, self.defaults, own_keys=True)
            # A group of ours must not change the user's dictionary if it is refused.
            param_group = dict(param_group)
            self._give_names(param_group)
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for i, parameter in enumerate(group["params"]):
            if any(parameter is other for other in group["params"][:i]):
                self.param_groups.pop()
                raise ValueError(f"{type(self).__name__}: a parameter stands in the group twice; list every parameter once")
        if self._core is None:
            return
        try:
            with _python_words(self._kind):
                self._core.add_group(group)
        except Exception:
            self.param_groups.pop()
            raise
        self._assign_roles(known=sum(len(other["params"]) for other in self.param_groups[:-1]))

    def _give_names(self, group: dict) -> None:
        """Parameters without names that join ones with names, as after a module was given, get them."""
        given: Any = group.get("params")
        if not self.param_groups or "param_names" not in self.param_groups[0] or "param_names" in group or isinstance(given, set):
            return
        parameters = [given] if isinstance(given, torch.Tensor) else list(given)
        group["params"] = parameters
        if all(isinstance(parameter, torch.Tensor) for parameter in parameters):
            number = len(self.param_groups)
            known = {} if self._roles is None else self._roles.names_of(parameters)
            group["param_names"] = [known.get(p) or f"group {number} parameter {i}" for i, p in enumerate(parameters)]

    @torch._disable_dynamo
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One update of the parameters; a closure clears the gradients, computes the loss, runs backward and returns it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._sync()
        self._view = None
        with _python_words(self._kind):
            self._update()
        return loss

    def _update(self) -> None:
        self._core.step()

    def backward(self, loss, *, scale=None, represents=1.0, measure=True, retain_graph=False, inputs=None) -> None:
        """`loss.backward()`: there is no curvature to measure here, so that one loop serves every optimizer of sgdph."""
        _check_loss(type(self).__name__, loss)
        loss.backward(retain_graph=retain_graph, inputs=_inputs(inputs) or None)

    @property
    def last_step(self) -> StepSummary:
        """What the last step did."""
        found = self._core.last_step()
        found["blocks_refreshed"] = [RefreshedBlock(*block) for block in found["blocks_refreshed"]]
        return StepSummary(**found)

    def __repr__(self) -> str:
        progress = self.param_groups[0].pop(_PROGRESS, None)
        try:
            return super().__repr__()
        finally:
            if progress is not None:
                self.param_groups[0][_PROGRESS] = progress

    # --- State --------------------------------------------------------------------------------------------------------

    @property
    def state(self):
        """What is kept for each parameter. The tensors are the core's own; to exchange one, assign `state` anew. A block that
        was not measured yet has zeros in their place, as `present` says, so that every state has the same keys."""
        view = self._view
        if view is None:
            view = defaultdict(dict)
            if self._core is not None:
                view.update(self._core.states())
                self._put_placeholders(view)
            self._view, self._shown = view, {parameter: dict(fields) for parameter, fields in view.items()}
        return view

    @state.setter
    def state(self, value) -> None:
        self._view = None
        if self.__dict__.get("_core") is not None:
            with _python_words(self._kind):
                self._core.restore([(p, _without_placeholders(s)) for p, s in value.items() if isinstance(p, torch.Tensor)], None)

    def _was_edited(self) -> bool:
        """Whether the user has taken states out of `state` or put others in, as code that prunes parameters does."""
        view, shown = self._view, self._shown
        if view is None:
            return False
        kept = {parameter: fields for parameter, fields in view.items() if fields}  # a look at a missing one leaves {}
        if kept.keys() != shown.keys():
            return True
        return any(
            fields.keys() != shown[p].keys() or any(_differs(value, shown[p][key]) for key, value in fields.items())
            for p, fields in kept.items()
        )

    def _put_placeholders(self, view) -> None:
        """torch.distributed.checkpoint loads the keys that a new optimizer's state has, and those alone."""
        if not self._info["has_blocks"] or not view:
            return
        candidates = self._core.progress()["candidates"]
        for parameter, candidate in zip(chain(*(g["params"] for g in self.param_groups)), candidates):
            if not candidate or parameter not in view:
                continue
            fields = view[parameter]
            fields[_PRESENT] = sum(1 << i for i, key in enumerate(_BLOCK_TENSORS) if key in fields)
            dtype = torch.promote_types(parameter.dtype, torch.float32)
            for key in _BLOCK_TENSORS:
                fields.setdefault(key, torch.zeros_like(parameter, dtype=dtype, requires_grad=False))

    def _write_progress(self) -> None:
        self._sync()
        self._view = None
        self.param_groups[0][_PROGRESS] = {"optimizer": self._kind, **(self._core.progress() or {})}

    def state_dict(self) -> Dict[str, Any]:
        self._write_progress()
        return super().state_dict()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        # torch would cast what is kept in float32 for parameters of fewer digits.
        raw = {}

        def keep(_, given):
            raw.update(given["state"])
            raw[_PROGRESS] = [group["params"] for group in given["param_groups"]]

        handle = self.register_load_state_dict_pre_hook(keep)
        self._raw = raw
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
            del self._raw

    def __getstate__(self):
        self._write_progress()
        groups = [dict(group) for group in self.param_groups]
        kept = {"defaults": self.defaults, "state": dict(self.state), "param_groups": groups}
        # A copy is of one kind with the original; functions of the user's stay with that.
        return {**kept, **{key: True for key in ("_distributed", "_had_module") if self.__dict__.get(key)}}

    def __setstate__(self, state) -> None:
        state = dict(state)
        saved = state.pop("state", {})
        groups = [dict(group) for group in state.pop("param_groups")]
        progress = dict(groups[0].get(_PROGRESS, {}))
        owner = progress.pop("optimizer", None)
        if owner not in (self._kind, type(self).__name__):  # a class derived from ours once saved its own name
            raise ValueError(
                f"{type(self).__name__}: the state is {'of no optimizer of sgdph' if owner is None else 'that of ' + owner}; "
                f"load one that sgdph.{self._kind} saved"
            )
        raw = self.__dict__.get("_raw")
        if raw is not None:
            ids = chain(*raw[_PROGRESS])
            places = dict(zip(ids, chain(*(group["params"] for group in groups))))
            saved = {places[key]: fields for key, fields in raw.items() if key in places}
        known = {option["name"]: option["default"] for option in self._info["options"]}
        for group in groups:  # of a version that lacked an option
            for key, value in known.items():
                group.setdefault(key, value)
        before = self.__dict__.get("param_groups")
        self.__dict__.setdefault("_view", None)
        self.__dict__.setdefault("_shown", {})
        self.__dict__.setdefault("_core", None)
        self.__dict__.setdefault("_roles", None)
        super().__setstate__({**state, "param_groups": groups})
        if self._roles is None and self.__dict__.get("_had_module"):
            self._roles = Roles(type(self).__name__, None, None, None, by_module=True)
        self.defaults.pop("differentiable", None)
        states = [(p, _without_placeholders(s)) for p, s in saved.items() if isinstance(p, torch.Tensor)]
        try:
            if self._core is None:
                self._build()
            else:
                self._sync()
            with _python_words(self._kind):
                self._core.restore(states, progress or None)
        except Exception:
            if before is not None:
                self.param_groups = before
                self._sync()
            raise
        self._view = None

    # --- Archives of the C++ class --------------------------------------------------------------------------------------

    def save_archive(self, file) -> None:
        """Writes the archive that `torch::load(optimizer, path)` of the C++ class reads: to a path or a binary file."""
        self._sync()
        data = self._core.save()
        if hasattr(file, "write"):
            file.write(data)
            return
        path = os.fspath(file)
        # A file half written must not take the place of a whole one.
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=os.path.basename(path) + ".")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def load_archive(self, file) -> None:
        """Reads what `torch::save(optimizer, path)` of the C++ class wrote, options and all."""
        self._sync()
        with _python_words(self._kind):
            self._core.load(_bytes_of(file))
        for group, options in zip(self.param_groups, self._core.options()):
            group.update(options)
        self.defaults.update(self._core.options()[0])
        self._view = None

    def load_matching_archive(self, file) -> Tuple[int, List[str]]:
        """Takes from the archive of a model that has changed since what fits; returns how many parameters have the
        archive's state now, and a line for each that has not. Options stay this optimizer's own."""
        self._sync()
        self._view = None
        with _python_words(self._kind):
            return self._core.load_matching(_bytes_of(file))

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self._core.discard()


class CurvatureOptimizer(Optimizer):
    """An optimizer that measures curvature by Hessian-vector products: its `backward` goes in place of the loss's."""

    _distributed = False  # averages over ranks, by sgdph.distribute
    _alone = True  # has no function that does
    _unscaled = False  # a loss of this window came without a word on its scale

    def backward(self, loss, *, scale=None, represents=1.0, measure=True, retain_graph=False, inputs=None) -> None:
        """`loss.backward()`, and the measurement of the curvature that is due.

        scale: what the loss was multiplied by (a number, a tensor, or the GradScaler itself); curvature is divided by it.
        represents: the curvature of this loss counts so many times: n, if one of n equal micro-batches alone is measured.
        measure: False for gradients only. retain_graph, inputs: as of `Tensor.backward`.
        """
        _check_loss(type(self).__name__, loss)
        number, tensor = _scale(type(self).__name__, scale)
        if not isinstance(measure, bool):
            raise TypeError(f"{type(self).__name__}.backward: measure is True or False, got {measure!r}")
        self._join_ranks()
        self._sync()
        with _python_words(self._kind):
            self._core.backward(
                loss, bool(retain_graph), number, tensor, measure, _represents(type(self).__name__, represents), _inputs(inputs)
            )
        self._unscaled = self._unscaled or (measure and scale is None)

    def update_curvature(self, loss, *, scale=None, represents=1.0, inputs=None) -> None:
        """Measures the curvature that is due from any loss, of a smaller batch say, and leaves gradients alone; plain
        `loss.backward()` may follow."""
        _check_loss(type(self).__name__, loss)
        number, tensor = _scale(type(self).__name__, scale)
        self._join_ranks()
        self._sync()
        with _python_words(self._kind):
            self._core.update_curvature(loss, number, tensor, _represents(type(self).__name__, represents), _inputs(inputs))

    def _check_scale(self) -> None:
        """A GradScaler takes its scale out of the gradients, but knows nothing of curvature."""
        measured, self._unscaled = self._unscaled, False
        graphs = any(p.grad is not None and p.grad.requires_grad for group in self.param_groups for p in group["params"])
        if (measured or graphs) and _is_in_scaler():
            self._core.discard()
            raise ValueError(
                f"{type(self).__name__}: a GradScaler steps, and the scale of the loss was not given, so that its curvature is "
                "as many times too large; use optimizer.backward(scaler.scale(loss), scale=scaler)"
            )

    def _join_ranks(self) -> None:
        """A copy of an optimizer that was distributed is as well; one that was never says so."""
        if not self._alone:
            return
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
            return
        if self._distributed:
            from ._tools import distribute

            distribute(self)
        else:
            self._alone = False
            _notify(
                f"{type(self).__name__}: there are {dist.get_world_size()} processes, and each goes by the curvature of its own "
                "loss, so that their parameters part; call sgdph.distribute(optimizer) after init_process_group"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self._unscaled = False

    def _update(self) -> None:
        self._check_scale()
        self._join_ranks()
        try:
            super()._update()
        except RuntimeError as error:
            # torch.distributed.checkpoint steps a new optimizer, with no rate and no gradients, so that it has a state.
            parameters = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
            still = all(float(group["lr"]) == 0 for group in self.param_groups)
            if "no curvature for this step" not in str(error) or not still or any(p.grad is None or p.grad.any() for p in parameters):
                raise
            with torch.enable_grad():
                self.update_curvature(sum((p.double().square() * 0).sum() for p in parameters))
            super()._update()

    @property
    def curvature_due(self) -> bool:
        """Whether curvature is due for the step under way, so that `backward` would measure."""
        self._sync()
        return self._core.curvature_due()

    def discard(self) -> None:
        """Forgets what was measured for the step under way, and leaves gradients alone."""
        self._core.discard()
        self._unscaled = False

    def _kept(self, name: str, function):
        """The function as the core may have it: without a hold on this object, which it may refer to."""
        if function is not None and not callable(function):
            raise TypeError(f"a function is wanted, or None, got {function!r}")
        self.__dict__.setdefault("_functions", {})[name] = function
        if function is None:
            return None
        owner: Any = weakref.ref(self)
        return lambda tensor: owner()._functions[name](tensor)

    def set_probe_source(self, source: Optional[Callable[[torch.Tensor], torch.Tensor]]) -> None:
        """Supplies the probe of a parameter, of its shape and type; None restores the built-in ones."""
        self._core.set_probe_source(self._kept("probe_source", source))

    def set_all_reduce(self, average: Optional[Callable[[torch.Tensor], Any]]) -> None:
        """A function that averages a tensor over ranks in place, used for curvature once a step; None: nothing."""
        self._alone = average is None
        self._core.set_all_reduce(self._kept("all_reduce", average))

    def set_ranks(self, rank: int, ranks: int) -> None:
        """Which of how many ranks this is, for work that ranks divide (refresh="spread"); 0 of 1 until it is called, and not saved.
        With more than one, `set_all_reduce` has to be called as well. Call it between steps."""
        self._core.set_ranks(rank, ranks)


class BlockOptimizer(CurvatureOptimizer):
    """An optimizer some of whose parameters are blocks."""

    def partition(self) -> Partition:
        """Which parameters are blocks now, and why; print it."""
        self._sync()
        return Partition(PartitionEntry._make((*entry[:4], _words(entry[4]))) for entry in self._core.partition())

    def set_curvature_filter(self, function: Optional[Callable[[torch.Tensor], torch.Tensor]]) -> None:
        """A function applied to a block's curvature before it is inverted, for studies; None turns it off."""
        self._core.set_curvature_filter(self._kept("curvature_filter", function))


def _check_loss(name: str, loss) -> None:
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"{name}.backward: the loss must be a tensor, got {type(loss).__name__}")


def _inputs(inputs) -> list:
    if inputs is None:
        return []
    found = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
    if not found:
        raise ValueError("inputs must not be empty; None stands for every leaf")
    for item in found:
        if not isinstance(item, torch.Tensor):
            raise TypeError(f"inputs are tensors, got {item!r}")
    return found


def _represents(name: str, given) -> float:
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        raise TypeError(f"{name}.backward: represents is a number, got {given!r}")
    if not 0 < given < float("inf"):
        raise ValueError(f"{name}.backward: represents must be finite and positive, got {given!r}")
    return float(given)


def _is_in_scaler() -> bool:
    """Whether a step is called by a GradScaler that is turned on."""
    frame = sys._getframe(1).f_back
    while frame is not None:  # hooks and schedulers wrap a step, each in a frame or two
        if frame.f_code.co_name == "_maybe_opt_step" and frame.f_code.co_filename.endswith("grad_scaler.py"):
            return True
        frame = frame.f_back
    return False


def _is_slip(key: str, name: str) -> bool:
    """Whether `key` is `name` with one or two letters wrong, missing, too many or in each other's place."""
    if min(len(key), len(name)) < 4 or abs(len(key) - len(name)) > 2:
        return False
    before: list = []
    row = list(range(len(name) + 1))
    for i, a in enumerate(key):
        after = [i + 1]
        for j, b in enumerate(name):
            cost = min(row[j] + (a != b), row[j + 1] + 1, after[j] + 1)
            if i and j and a == name[j - 1] and key[i - 1] == b:
                cost = min(cost, before[j - 1] + 1)
            after.append(cost)
        before, row = row, after
    return row[-1] <= 2


def _differs(a, b) -> bool:
    return a is not b if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor) else a != b


def _scale(name: str, scale):
    """The scale as a number and a tensor, of which one says nothing."""
    if scale is None:
        return 1.0, None
    if isinstance(scale, torch.Tensor):
        return 1.0, scale
    if hasattr(scale, "get_scale"):
        return float(scale.get_scale()), None
    if isinstance(scale, (int, float)) and not isinstance(scale, bool):
        if scale == 0 or not math.isfinite(scale):
            raise ValueError(f"{name}.backward: scale must be finite and not 0, got {scale!r}")
        return float(scale), None
    raise TypeError(f"{name}.backward: scale is a number, a tensor or a GradScaler, got {scale!r}")


def _without_placeholders(fields: dict) -> dict:
    fields = dict(fields)
    present = fields.pop(_PRESENT, None)
    if present is None:
        return fields
    absent = {key for i, key in enumerate(_BLOCK_TENSORS) if not present >> i & 1}
    return {key: value for key, value in fields.items() if key not in absent}


# Of a block; which of them there are depends on its turns.
_BLOCK_TENSORS = ("curvature", "cycle_sum")


def _bytes_of(file) -> bytes:
    if hasattr(file, "read"):
        return file.read()
    with open(file, "rb") as opened:
        return opened.read()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
