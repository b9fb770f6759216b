# SPDX-License-Identifier: Apache-2.0
"""Small helpers that training scripts need, and tools to find what is wrong with one."""

from .environment import collect_env
from .foreign_weights import load_torch_state_dict
from .numerics import check_numerics
from .observation import Observer
from .progress import Progress, progress
from .replay import replay, save_failing
from .run_check import run_check

__all__ = [
    "Observer",
    "Progress",
    "check_numerics",
    "collect_env",
    "load_torch_state_dict",
    "progress",
    "replay",
    "run_check",
    "save_failing",
]
