"""The classes, one for each optimizer of the library's catalogue: names, defaults, bounds and help are read off it."""
from __future__ import annotations

import inspect
import textwrap
from typing import Any, Dict, Literal, Optional, Tuple, Union

import torch

_TYPES = {"bool": bool, "int": int, "float": float, "str": str}


def _annotation(option: dict) -> Any:
    if option["type"] == "tuple":
        kind: Any = Tuple[(float,) * option["count"]]
    elif option["choices"]:
        kind = Literal[tuple(option["choices"])]
    else:
        kind = _TYPES[option["type"]]
    if option["name"] == "lr":
        kind = Union[kind, torch.Tensor]
    return Optional[kind] if option["optional"] else kind


def parameters_of(info: dict) -> list:
    """The parameters of a class's constructor beside `self`."""
    kind = inspect.Parameter
    found = [kind("params", kind.POSITIONAL_OR_KEYWORD)]
    for option in info["options"]:
        way = kind.POSITIONAL_OR_KEYWORD if option["name"] == "lr" else kind.KEYWORD_ONLY
        found.append(kind(option["name"], way, default=option["default"], annotation=_annotation(option)))
    if info["has_blocks"]:
        for name in ("module", "blocks", "first_order"):
            found.append(kind(name, kind.KEYWORD_ONLY, default=None))
    return found


def _option_help(option: dict) -> str:
    text = f"{option['name']} ({option['default']!r}): {option['help']}"
    notes = []
    if option["choices"]:
        notes.append(" | ".join(option["choices"]))
    if option["bound"] and (option["type"], option["bound"]) != ("int", "be finite"):  # as whole numbers are
        notes.append("must " + option["bound"])
    if option["shared"]:
        notes.append("the same in all groups")
    if notes:
        text += f" [{'; '.join(notes)}]"
    return textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="        ")


_PARAMS = """    params: a module, its parameters or named parameters, or groups: dictionaries with "params" and options of their own"""
_BLOCKS = """    module (None): whose module types say which parameters are blocks; of itself, where params is the module.
        Without one, all 1-D parameters are blocks, as published
    blocks (None): patterns of names ("*.norm?.weight"), or a function of a ParameterInfo that says True (a block),
        False (first-order) or None (as by the rules)
    first_order (None): patterns of names of parameters that are no blocks, or a function that says True"""


def doc_of(info: dict) -> str:
    lines = [f"{info['title']} ({info['source']}), over the C++ core.", "", _PARAMS]
    lines += [_option_help(option) for option in info["options"]]
    if info["has_blocks"]:
        lines.append(_BLOCKS)
    loop = "optimizer.backward(loss)" if info["measures_curvature"] else "loss.backward()"
    lines += ["", "    optimizer.zero_grad()", "    loss = criterion(model(x), y)", f"    {loop}", "    optimizer.step()"]
    return "\n".join(lines)


def make_class(info: dict, base: type, module: str) -> type:
    parameters = parameters_of(info)
    names = [parameter.name for parameter in parameters]
    name = info["class_name"]

    def __init__(self, params, *args, **options):
        if len(args) > 1:
            raise TypeError(f"{name} takes params and lr by position, the other options by name")
        if args:
            if "lr" in options:
                raise TypeError(f"{name} got lr twice")
            options["lr"] = args[0]
        blocks = {key: options.pop(key) for key in names if key in ("module", "blocks", "first_order") and key in options}
        self._setup(params, options, **blocks)

    made: Any = __init__
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    made.__signature__ = inspect.Signature([own, *parameters])
    __init__.__annotations__ = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
    __init__.__qualname__, __init__.__module__ = f"{name}.__init__", module
    body: Dict[str, Any] = {"__init__": __init__, "__doc__": doc_of(info), "__module__": module, "_info": info, "_kind": name}
    body["__signature__"] = inspect.Signature(parameters)
    return type(name, (base,), body)
