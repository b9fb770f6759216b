# SPDX-License-Identifier: Apache-2.0
"""Small helpers that training scripts need, and tools to find what is wrong with one."""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from tenon.nn.utils.foreign_weights import load_torch_state_dict

from .environment import collect_env
from .numerics import check_numerics
from .observation import Observer
from .progress import Progress, progress
from .replay import replay, save_failing
from .run_check import run_check

if TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import cpp_extension as cpp_extension
    from . import dlpack as dlpack
    from .checkpoint_manager import CheckpointManager as CheckpointManager

__all__ = [
    "CheckpointManager",
    "Observer",
    "Progress",
    "check_numerics",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "dlpack",
    "load_torch_state_dict",
    "progress",
    "replay",
    "run_check",
    "save_failing",
]


# Imported when they are named: these need operators, and so the plugins, or much of the library.
_LATE = ("checkpoint", "cpp_extension", "dlpack")


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return _importlib.import_module(f"tenon.utils.{name}")
    if name == "CheckpointManager":
        return _importlib.import_module("tenon.utils.checkpoint_manager").CheckpointManager
    raise AttributeError(f"module 'tenon.utils' has no attribute {name!r}")
