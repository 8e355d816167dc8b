"""SGD with Partial Hessian and its rivals as optimizers of torch.optim kind, over the C++ library sgdph.

    optimizer = sgdph.SGDPH(model, lr=0.01, weight_decay=5e-3)
    loss = criterion(model(x), y)
    optimizer.backward(loss)      # in place of loss.backward()
    optimizer.step()
"""
import torch as _torch

from . import _built


def _check_torch(found: str, built: str) -> None:
    """The extension fits one minor version of torch alone."""
    if found.split("+")[0].split(".")[:2] != built.split(".")[:2]:
        raise ImportError(
            f"sgdph was built with torch {built} and finds torch {found}: build it anew with "
            "pip install --no-build-isolation --force-reinstall --no-deps on its source"
        )


_check_torch(_torch.__version__, _built.torch_version)

from . import _core  # noqa: E402
from ._classes import make_class as _make_class  # noqa: E402
from ._optimizer import (  # noqa: E402
    BlockOptimizer,
    CurvatureOptimizer,
    Optimizer,
    Partition,
    PartitionEntry,
    RefreshedBlock,
    StepSummary,
)
from ._inspect import InspectedBlock, Inspection, inspect  # noqa: E402
from ._tools import backward_compiled, distribute, frozen_statistics  # noqa: E402
from ._roles import ParameterInfo, is_channel_wise  # noqa: E402
from ._core import fast_operators_installed, install_fast_operators, remove_fast_operators  # noqa: E402

__version__ = _built.version
__all__ = [
    "BlockOptimizer", "CurvatureOptimizer", "InspectedBlock", "Inspection", "Optimizer", "ParameterInfo", "Partition",
    "PartitionEntry", "RefreshedBlock", "StepSummary", "backward_compiled", "distribute", "fast_operators_installed",
    "frozen_statistics", "inspect", "install_fast_operators", "is_channel_wise", "optimizers", "remove_fast_operators",
]


def _base_of(info):
    if info["has_blocks"]:
        return BlockOptimizer
    return CurvatureOptimizer if info["measures_curvature"] else Optimizer


# Name to choose it by -> class: {"sgd-ph": sgdph.SGDPH, ...}
optimizers = {info["name"]: _make_class(info, _base_of(info), __name__) for info in _core.catalogue()}
for _class in optimizers.values():
    globals()[_class.__name__] = _class
    __all__.append(_class.__name__)
del _class
