# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that find, order, take and put elements."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core, array_api
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.numpy._convert import (
    as_tensor,
    kind_of,
    unified,
)
from tenon.compat.numpy._creation import arange
from tenon.compat.numpy._layout import broadcast_to, concatenate

__all__ = """argsort argwhere isin nonzero put put_along_axis searchsorted sort take take_along_axis unique""".split()

Axes = builtins.int | Sequence[builtins.int] | None


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero."""
    x = as_tensor(a)
    if x.ndim == 0:
        raise ValueError("nonzero(): expected at least one axis, got a 0-d array; use atleast_1d()")
    return array_api.nonzero(x)


def argwhere(a: Any) -> Tensor:
    """The same as rows of a matrix."""
    return _operator("nonzero")(as_tensor(a))


def _in_order(name: str) -> Callable[..., Tensor]:
    def function(
        a: Any, axis: builtins.int | None = -1, kind: str | None = None, stable: Any = None
    ) -> Tensor:
        if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
            raise ValueError(f"{name}(): expected a kind of sort, got {kind!r}")
        if kind is not None and stable is not None:
            raise ValueError(f"{name}(): expected one of `kind` and `stable`, got both")
        x = as_tensor(a)  # every sort here is stable
        return _operator(name)(x.reshape(-1) if axis is None else x, -1 if axis is None else axis)

    function.__doc__ = f"tenon.{name}; of the flat tensor where axis is None."
    return function


sort, argsort = _in_order("sort"), _in_order("argsort")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where elements would go in an ascending vector."""
    order = None if sorter is None else as_tensor(sorter)
    edges, values = unified([as_tensor(a), v])
    return array_api.searchsorted(edges, values, side=side, sorter=order)


def indices_within(where: str, index: Any, extent: builtins.int, mode: str) -> Tensor:
    """Indices from 0 to below `extent`: others are an error, wrap, or end at the ends."""
    x = as_tensor(index)
    if kind_of(x.dtype) == "b":
        x = x.to(dtype=_core.int64)
    if not x.dtype.is_integer:
        if x.numel():
            raise TypeError(f"{where}(): expected indices of a dtype of integers, got {x.dtype}")
        x = x.to(dtype=_core.int64)
    x = x.to(dtype=_core.int64)
    if mode == "wrap":
        return x % extent
    if mode == "clip":
        return _operator("clip")(x, 0, extent - 1)
    if mode != "raise":
        raise ValueError(f"{where}(): expected mode 'raise', 'wrap' or 'clip', got {mode!r}")
    if x.numel() and bool(((x < -extent) | (x >= extent)).any()):
        raise IndexError(f"{where}(): expected indices within an axis of size {extent}")
    return _operator("where")(x < 0, x + extent, x)


def take(a: Any, indices: Any, axis: builtins.int | None = None, mode: str = "raise") -> Tensor:
    """Elements at indices along an axis; of the flat tensor without one."""
    x = as_tensor(a)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    index = indices_within("take", indices, x.shape[axis], mode)
    made = _operator("index_select")(x, index.reshape(-1), axis)
    return made.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


def take_along_axis(arr: Any, indices: Any, axis: builtins.int | None = -1) -> Tensor:
    """Elements at indices along an axis, the other axes broadcast."""
    x, index = _aligned("take_along_axis", arr, indices, axis)
    axis = 0 if axis is None else axis
    return _operator("take_along_axis")(x, index, axis)


def put_along_axis(arr: Tensor, indices: Any, values: Any, axis: builtins.int | None) -> None:
    """Writes values at indices along an axis, in place."""
    if not isinstance(arr, Tensor):
        raise TypeError(f"put_along_axis(): expected a tensor, got {type(arr).__name__}")
    x, index = _aligned("put_along_axis", arr, indices, axis)
    value = broadcast_to(as_tensor(values).to(dtype=arr.dtype), tuple(index.shape))
    made = _operator("scatter")(x, index, value, 0 if axis is None else axis)
    _operator("clone")(made.reshape(tuple(arr.shape)), out=arr)


def _aligned(name: str, arr: Any, indices: Any, axis: Any) -> tuple[Tensor, Tensor]:
    x, index = as_tensor(arr), as_tensor(indices)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    if index.ndim != x.ndim:
        raise ValueError(
            f"{name}(): expected indices of {x.ndim} axes, as the array has, got {index.ndim}"
        )
    index = indices_within(name, index, x.shape[axis], "raise")
    shapes = [[1 if i == axis else n for i, n in enumerate(each.shape)] for each in (x, index)]
    common = list(tenon.broadcast_shapes(*map(tuple, shapes)))
    both = []
    for each in (x, index):
        lengths = list(common)
        lengths[axis] = each.shape[axis]
        both.append(_operator("expand")(each, lengths))
    return both[0], both[1]


def put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes values, repeated as often as it takes, at indices of the flat tensor, in place."""
    if not isinstance(a, Tensor):
        raise TypeError(f"put(): expected a tensor, got {type(a).__name__}")
    index = indices_within("put", ind, a.numel(), mode).reshape(-1)
    values = as_tensor(v).to(dtype=a.dtype).reshape(-1)
    if index.numel() == 0 or values.numel() == 0:
        return
    values = take(values, arange(index.numel()) % values.numel())
    made = _operator("index_put")(a.reshape(-1), [index], values)
    _operator("clone")(made.reshape(tuple(a.shape)), out=a)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: builtins.int | None = None,
    equal_nan: bool = True,
) -> Any:
    """The different elements or slices in ascending order, and what is wanted. With `equal_nan` every
    NaN is the same."""
    x = as_tensor(ar)
    found = tenon.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, index, inverse, counts = found
    if axis is None and equal_nan and kind_of(x.dtype) in "fc":
        missing = _operator("isnan")(values)
        known = builtins.int((~missing).sum().item())
        if known + 1 < values.shape[0]:
            inverse = _operator("minimum")(inverse, known)
            counts = concatenate([counts[:known], counts[known:].sum().reshape(1)])
            values, index = values[: known + 1], index[: known + 1]
    wanted = (True, return_index, return_inverse, return_counts)
    results = [
        part
        for part, is_wanted in zip((values, index, inverse, counts), wanted, strict=True)
        if is_wanted
    ]
    return tuple(results) if len(results) > 1 else results[0]


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements are among others."""
    x, among = unified([as_tensor(element), as_tensor(test_elements)])
    return tenon.isin(x, among.reshape(-1), invert=invert)
