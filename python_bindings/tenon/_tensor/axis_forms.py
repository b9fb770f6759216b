# SPDX-License-Identifier: Apache-2.0
"""Functions of axes that take NumPy's form as well, as opt_einsum and other libraries call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor


def transpose(x: Tensor, *order: Any, axes: Sequence[int] | None = None, **keywords: Any) -> Any:
    """`x` with the two axes `axis0` and `axis1` exchanged; by default the last two. One sequence, `transpose(x, (2, 0, 1))` or `axes=`,
    is the order of all axes, as in `permute`."""
    is_order = len(order) == 1 and isinstance(order[0], (list, tuple))
    if axes is None and not any(isinstance(each, (list, tuple)) for each in order):
        return _core.operator("transpose")(x, *order, **keywords)
    if (axes is not None and order) or keywords or not (is_order or axes is not None):
        raise TypeError("transpose(): expected two axes, or the order of all axes, got both")
    return _core.operator("permute")(x, list(order[0] if axes is None else axes))


def tensordot(x: Tensor, y: Tensor, *given: Any, axes: Any = None, **keywords: Any) -> Any:
    """Sum of products over the axes `axes_x` of `x` and `axes_y` of `y`. `axes`, or a third argument alone, is NumPy's: a number, for
    the last axes of `x` and the first of `y`, 2 where nothing is given; or a pair of axes."""
    if len(given) == 2 or keywords.keys() - {"out"}:
        if axes is not None:
            raise TypeError("tensordot(): expected `axes`, or `axes_x` and `axes_y`, got both")
        return _core.operator("tensordot")(x, y, *given, **keywords)
    if len(given) > 1 or given and axes is not None:
        raise TypeError("tensordot(): expected `axes`, or `axes_x` and `axes_y`, got both")
    pair = given[0] if given else 2 if axes is None else axes
    if isinstance(pair, int):
        most = min(x.ndim, y.ndim)
        if not 0 <= pair <= most:
            raise ValueError(f"tensordot(): expected 0 to {most} axes, got axes={pair}")
        pair = list(range(x.ndim - pair, x.ndim)), list(range(pair))
    elif len(pair) != 2:
        raise ValueError(f"tensordot(): expected a number or a pair of axes, got axes={pair!r}")
    listed = [[each] if isinstance(each, int) else list(each) for each in pair]
    return _core.operator("tensordot")(x, y, *listed, **keywords)


__all__ = ["tensordot", "transpose"]
