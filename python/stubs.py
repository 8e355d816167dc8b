"""Writes what editors and type checkers read of the package from the catalogue: stubs.py CORE.so OUT.pyi, at build time."""
import importlib.machinery
import importlib.util
import inspect
import sys
from pathlib import Path

HEAD = '''# Made from the library's catalogue when the package was built.
import typing
from typing import Literal, Optional, Tuple, Union

import torch
from torch.optim.optimizer import ParamsT

from ._optimizer import BlockOptimizer as BlockOptimizer
from ._optimizer import CurvatureOptimizer as CurvatureOptimizer
from ._optimizer import Optimizer as Optimizer
from ._optimizer import Partition as Partition
from ._optimizer import PartitionEntry as PartitionEntry
from ._optimizer import RefreshedBlock as RefreshedBlock
from ._optimizer import StepSummary as StepSummary
from ._roles import ParameterInfo as ParameterInfo
from ._roles import is_channel_wise as is_channel_wise
from ._tools import backward_compiled as backward_compiled
from ._tools import distribute as distribute
from ._tools import frozen_statistics as frozen_statistics
from ._inspect import Inspection as Inspection
from ._inspect import InspectedBlock as InspectedBlock
from ._inspect import inspect as inspect

__version__: str
optimizers: typing.Dict[str, typing.Type[Optimizer]]

def install_fast_operators() -> None: ...
def remove_fast_operators() -> None: ...
def fast_operators_installed() -> bool: ...
'''
OTHERS = {
    "params": "typing.Union[torch.nn.Module, ParamsT]",
    "module": "typing.Optional[torch.nn.Module]",
    "blocks": "typing.Union[None, str, typing.Iterable[str], typing.Callable[[ParameterInfo], typing.Optional[bool]]]",
    "first_order": "typing.Union[None, str, typing.Iterable[str], typing.Callable[[ParameterInfo], typing.Optional[bool]]]",
}


def _load(name: str, path: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text(catalogue: list) -> str:
    classes = _load("classes", str(Path(__file__).parent / "sgdph/_classes.py"))
    parts = [HEAD]
    for info in catalogue:
        arguments = ["self"]
        for parameter in classes.parameters_of(info):
            kind = OTHERS.get(parameter.name) or inspect.formatannotation(parameter.annotation)
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in arguments:
                arguments.append("*")
            default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
            arguments.append(f"{parameter.name}: {kind}{default}")
        base = "BlockOptimizer" if info["has_blocks"] else "CurvatureOptimizer" if info["measures_curvature"] else "Optimizer"
        doc = "\n".join("    " + line if line else "" for line in classes.doc_of(info).splitlines()).strip()
        lines = ",\n        ".join(arguments)
        parts.append(f'class {info["class_name"]}({base}):\n    """{doc}"""\n\n    def __init__(\n        {lines},\n    ) -> None: ...\n')
    return "\n".join(parts)


if __name__ == "__main__":
    import torch  # noqa: F401  what the extension is linked to

    Path(sys.argv[2]).write_text(text(_load("_core", sys.argv[1]).catalogue()))
