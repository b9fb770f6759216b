# SPDX-License-Identifier: Apache-2.0
"""Functions of torch for sizes, which may be symbols where a program is traced. Here sizes are numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

__all__ = "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum".split()


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """The number without what is behind its point."""
    return int(a)


def _as_both(value: Any, a: Any, b: Any) -> Any:
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if one of them is."""
    return _as_both(builtins.max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if one of them is."""
    return _as_both(builtins.min(a, b), a, b)


def sym_not(a: Any) -> bool:
    return not a


def sym_sqrt(a: Any) -> float:
    return math.sqrt(a)


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of the numbers of a list."""
    return builtins.sum(args)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b` holds, else `f`."""
    if type(t) is not type(f):
        raise TypeError(
            f"sym_ite(): expected both values of one class, got {type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f
