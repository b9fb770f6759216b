# SPDX-License-Identifier: Apache-2.0
"""Results that are written into `out`, as NumPy and Paddle do it."""

from __future__ import annotations

from typing import Any

from tenon import _core
from tenon._core import Tensor


def deliver(where: str, result: Any, out: Any) -> Any:
    """`result` written into `out`, a tensor or as many as there are results; returns `out`."""
    if isinstance(result, (list, tuple)):
        if not isinstance(out, (list, tuple)) or len(out) != len(result):
            raise TypeError(f"{where}(): expected `out` to be {len(result)} tensors, got {out!r}")
        parts = [
            value if to is None else deliver(where, value, to)
            for value, to in zip(result, out, strict=True)
        ]
        return tuple(parts)
    if isinstance(out, (list, tuple)) and len(out) == 1:
        out = out[0]
    check_out(where, result, out)
    _core.operator("clone")(result.to(dtype=out.dtype), out=out)
    return out


def check_out(where: str, result: Tensor, out: Any) -> None:
    """An error where `out` does not hold `result`: neither shape nor kind may be narrower."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{where}(): expected `out` to be a tensor, got {type(out).__name__}")
    if tuple(out.shape) != tuple(result.shape):
        raise ValueError(
            f"{where}(): expected `out` of shape {tuple(result.shape)}, got {tuple(out.shape)}"
        )
    ranks = [_rank(each.dtype) for each in (result, out)]
    if ranks[0] > ranks[1]:
        raise TypeError(
            f"{where}(): expected `out` of a dtype that holds {result.dtype}, got {out.dtype}"
        )
    if ranks[0] == ranks[1] == 1 and result.dtype.itemsize > out.dtype.itemsize:
        raise TypeError(
            f"{where}(): expected `out` of a dtype that holds {result.dtype}, got {out.dtype}"
        )


def _rank(dtype: Any) -> int:
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 1 if dtype.is_integer else 0
