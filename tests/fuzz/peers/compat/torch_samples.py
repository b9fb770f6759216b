# SPDX-License-Identifier: Apache-2.0
"""Arguments for functions of PyTorch's that its table of samples lacks, and for parameters it never gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Functions as arguments, and what Tenon is given for them.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Different numbers of both signs."""
    count = 1
    for each in shape:
        count *= each
    values = torch.arange(count, dtype=torch.float64) * 0.75 - count / 3
    return values.reshape(shape).to(dtype)


def sample(made: Callable[[], tuple[Any, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments and keywords; the last item is a dict if there are keywords."""
    given = made()
    if given and isinstance(given[-1], dict):
        return given[:-1], given[-1]
    return given, {}


SAMPLES: dict[str, tuple[Callable[[], tuple[Any, ...]], ...]] = {
    "chunk": (lambda: (_x(0, 3), 3, {"dim": 0}), lambda: (_x(4, 3), 2)),
    "sign": (lambda: (torch.tensor([float("nan"), -2.0, 0.0]),),),
}
