# SPDX-License-Identifier: Apache-2.0
"""Functions of axes that take NumPy's form as well, as opt_einsum and other libraries call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor

Axes = int | Sequence[int]


def transpose(x: Tensor, axis0: Axes = -2, axis1: int = -1, *, axes: Sequence[int] | None = None) -> Any:
    """`x` with two axes exchanged; by default the last two. One sequence, `transpose(x, (2, 0, 1))`, is the order of all axes, as
    in `permute`."""
    if axes is None and not isinstance(axis0, (list, tuple)):
        return _core.operator("transpose")(x, axis0, axis1)
    if axes is not None and axis0 != -2 or axis1 != -1:
        raise TypeError("transpose(): expected two axes, or the order of all axes, got both")
    return _core.operator("permute")(x, list(axis0 if axes is None else axes))  # type: ignore[arg-type]


def tensordot(
    x: Tensor, y: Tensor, axes_x: Any = None, axes_y: Axes | None = None, *, axes: Any = None
) -> Any:
    """Sum of products over axes `axes_x` of `x` and `axes_y` of `y`. `axes`, or `axes_x` alone, is NumPy's: a number, for the last
    axes of `x` and the first of `y`, 2 where nothing is given; or a pair of axes."""
    if axes is not None and (axes_x is not None or axes_y is not None):
        raise TypeError("tensordot(): expected `axes`, or `axes_x` and `axes_y`, got both")
    if axes_y is None:
        pair = axes if axes is not None else 2 if axes_x is None else axes_x
        if isinstance(pair, int):
            if not 0 <= pair <= min(x.ndim, y.ndim):
                raise ValueError(
                    f"tensordot(): expected 0 to {min(x.ndim, y.ndim)} axes, got axes={pair}"
                )
            axes_x, axes_y = list(range(x.ndim - pair, x.ndim)), list(range(pair))
        elif len(pair) == 2:
            axes_x, axes_y = pair
        else:
            raise ValueError(f"tensordot(): expected a number or a pair of axes, got axes={pair!r}")
    listed = [[each] if isinstance(each, int) else list(each) for each in (axes_x, axes_y)]
    return _core.operator("tensordot")(x, y, *listed)


__all__ = ["tensordot", "transpose"]
