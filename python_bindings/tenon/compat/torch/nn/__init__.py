# SPDX-License-Identifier: Apache-2.0
"""torch.nn: the layers of tenon.nn, and functions with PyTorch's parameters."""

from importlib import import_module
from typing import Any

from tenon import nn as _nn
from tenon.compat.torch.nn import functional as functional


def __getattr__(name: str) -> Any:
    if name == "parallel":  # loaded when it is named: it brings groups of ranks along
        return import_module(f"{__name__}.parallel")
    return getattr(_nn, name)


def __dir__() -> list[str]:
    return sorted({*dir(_nn), "functional", "parallel"})
