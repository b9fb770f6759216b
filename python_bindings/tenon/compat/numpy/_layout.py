# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on shapes: orders of axes, joints, parts, triangles."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import array_api
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.numpy._convert import (
    as_tensor,
    dtype_of,
    unified,
)

__all__ = """array_split broadcast_arrays broadcast_to concat concatenate expand_dims flip hstack moveaxis
permute_dims ravel repeat reshape roll rot90 row_stack split squeeze stack swapaxes tile
transpose tril triu unstack vstack""".split()

Axes = builtins.int | Sequence[builtins.int] | None


def wanted_dtype(dtype: Any) -> Any:
    return None if dtype is None else dtype_of(dtype)


def lengths_of(shape: Any) -> list[builtins.int]:
    if isinstance(shape, Tensor) or hasattr(shape, "__array__"):
        shape = shape.tolist()
    return [shape] if isinstance(shape, builtins.int) else [int_of(each) for each in shape]


def int_of(value: Any) -> builtins.int:
    """A whole number, also where it is a tensor or an array of one element."""
    if isinstance(value, (float, complex)):
        raise TypeError(f"expected a whole number, got {value!r}")
    return builtins.int(value)


def copies(name: str, copy: Any) -> bool:
    if copy not in (True, False, None):
        raise ValueError(f"{name}(): expected copy True, False or None, got {copy!r}")
    return bool(copy)


def _by_columns(x: Tensor) -> Tensor:
    return _operator("permute")(x, list(range(x.ndim))[::-1])


def _order(name: str, order: str) -> bool:
    """Whether elements are taken with the first axis fastest."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{name}(): expected order 'C', 'F' or 'A', got {order!r}")
    if order in ("A", "K"):
        raise NotImplementedError(
            f"{name}(): expected order 'C' or 'F', got {order!r}, which depends on how elements lie "
            f"in memory"
        )
    return order == "F"


def reshape(a: Any, shape: Any, order: str = "C", copy: Any = None) -> Tensor:
    """The elements in another shape, a view where that is possible."""
    x, lengths = as_tensor(a), lengths_of(shape)
    if _order("reshape", order):
        made = _by_columns(_by_columns(x).reshape(lengths[::-1]))
    else:
        made = x.reshape(lengths)
    if copy is False and x.numel() and made.data_ptr() != x.data_ptr():
        raise ValueError("reshape(): expected a shape that is a view where copy is False")
    return made.clone() if copies("reshape", copy) else made


def ravel(a: Any, order: str = "C") -> Tensor:
    """The elements as a vector."""
    x = as_tensor(a)
    return (_by_columns(x) if _order("ravel", order) else x).reshape(-1)


def transpose(a: Any, axes: Sequence[builtins.int] | None = None) -> Tensor:
    """The axes in another order, reversed by default."""
    x = as_tensor(a)
    return _operator("permute")(x, list(range(x.ndim))[::-1] if axes is None else list(axes))


permute_dims = transpose


def conj_transpose(x: Tensor) -> Tensor:
    """The adjoints of matrices."""
    return _operator("conj")(_operator("transpose")(x, -2, -1))


def any_nonzero(x: Tensor) -> Tensor:
    """Whether an element is not zero."""
    return (x != 0).any()


def swapaxes(a: Any, axis1: builtins.int, axis2: builtins.int) -> Tensor:
    """Two axes exchanged."""
    return _operator("transpose")(as_tensor(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved elsewhere."""
    return _operator("movedim")(as_tensor(a), source, destination)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """New axes of length 1."""
    return _operator("unsqueeze")(as_tensor(a), axis)


def squeeze(a: Any, axis: Axes = None) -> Tensor:
    """Without axes of length 1."""
    x = as_tensor(a)
    axes = [] if axis is None else [axis] if isinstance(axis, builtins.int) else list(axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze(): expected axes of length 1, got {x.shape[each]}")
    return x if axis is not None and not axes else _operator("squeeze")(x, axes or None)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """The elements seen with another shape."""
    return _operator("expand")(as_tensor(array), lengths_of(shape))


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """The arguments seen with the shape that they have together."""
    given = [as_tensor(each) for each in args]
    shape = tenon.broadcast_shapes(*(tuple(each.shape) for each in given))
    return tuple(_operator("expand")(each, list(shape)) for each in given)


def concatenate(arrays: Sequence[Any], axis: builtins.int | None = 0, dtype: Any = None) -> Tensor:
    """Joined along an axis; without one, all elements in a vector."""
    return array_api.concat(unified([*_parts(arrays)], wanted_dtype(dtype)), axis=axis)


def _parts(arrays: Any) -> list[Tensor]:
    """Arrays to join: Python's numbers among them are arrays, too."""
    return [as_tensor(each) for each in arrays]


concat = concatenate


def stack(arrays: Sequence[Any], axis: builtins.int = 0, dtype: Any = None) -> Tensor:
    """Joined along a new axis."""
    return _operator("stack")(unified(_parts(arrays), wanted_dtype(dtype)), axis)


def unstack(x: Any, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(_operator("unbind")(as_tensor(x), axis))


def vstack(tup: Sequence[Any], dtype: Any = None) -> Tensor:
    """Rows, one below the other."""
    return tenon.vstack(unified(_parts(tup), wanted_dtype(dtype)))


row_stack = vstack


def hstack(tup: Sequence[Any], dtype: Any = None) -> Tensor:
    """Columns side by side, vectors one after the other."""
    return tenon.hstack(unified(_parts(tup), wanted_dtype(dtype)))


def array_split(ary: Any, indices_or_sections: Any, axis: builtins.int = 0) -> list[Tensor]:
    """Parts of about one length, or between indices."""
    x = as_tensor(ary)
    extent, parts = x.shape[axis], indices_or_sections
    if isinstance(parts, builtins.int):
        if parts <= 0:
            raise ValueError(f"array_split(): expected at least one part, got {parts}")
        sizes = [extent // parts + (i < extent % parts) for i in range(parts)]
        edges = [builtins.sum(sizes[:i]) for i in range(parts + 1)]
    else:
        parts = parts.tolist() if hasattr(parts, "tolist") else parts
        edges = [0, *parts, extent]
    y = moveaxis(x, axis, 0)
    return [moveaxis(y[a:b], 0, axis) for a, b in zip(edges, edges[1:], strict=False)]


def split(ary: Any, indices_or_sections: Any, axis: builtins.int = 0) -> list[Tensor]:
    """Parts of one length, or between indices."""
    extent, parts = as_tensor(ary).shape[axis], indices_or_sections
    if isinstance(parts, builtins.int) and (parts <= 0 or extent % parts):
        raise ValueError(
            f"split(): expected parts of one length, got {parts} of {extent}; use array_split()"
        )
    return array_split(ary, parts, axis)


def tile(A: Any, reps: Any) -> Tensor:
    """Repeated as a whole."""
    x, times = as_tensor(A), lengths_of(reps)
    times = [1] * (x.ndim - len(times)) + times
    made = _operator("tile")(x, times)
    return made.clone() if builtins.all(each == 1 for each in times) else made


def repeat(a: Any, repeats: Any, axis: builtins.int | None = None) -> Tensor:
    """Each element repeated."""
    counts = repeats if isinstance(repeats, builtins.int) else as_tensor(repeats)
    if isinstance(counts, Tensor) and counts.numel() == 1:
        counts = builtins.int(counts.item())
    made = array_api.repeat(as_tensor(a), counts, axis=axis)
    is_one = isinstance(counts, builtins.int) and counts == 1
    return made.clone() if is_one else made


def roll(a: Any, shift: Any, axis: Axes = None) -> Tensor:
    """Elements moved along an axis, from the end to the start."""
    if axis is not None and isinstance(axis, builtins.int) != isinstance(shift, builtins.int):
        several: Any = axis if isinstance(shift, builtins.int) else shift
        shift = [shift] * len(several) if isinstance(shift, builtins.int) else list(shift)
        axis = [axis] * len(several) if isinstance(axis, builtins.int) else list(axis)
    return _operator("roll")(as_tensor(a), shift, axis)


def flip(m: Any, axis: Axes = None) -> Tensor:
    """Elements in reverse order, as a view."""
    return _operator("flip")(as_tensor(m), axis)


def rot90(m: Any, k: builtins.int = 1, axes: Sequence[builtins.int] = (0, 1)) -> Tensor:
    """Rotates by quarters from the first axis to the second, as a view."""
    x = as_tensor(m)
    first, second = (each % x.ndim if -x.ndim <= each < x.ndim else each for each in axes)
    if first == second or not (0 <= first < x.ndim and 0 <= second < x.ndim):
        raise ValueError(f"rot90(): expected two different axes of {x.ndim}, got {tuple(axes)}")
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return flip(x, (first, second))
    if k == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def tril(m: Any, k: builtins.int = 0) -> Tensor:
    """The elements at and below a diagonal; of a vector, which is every row."""
    return _operator("tril")(_square_of_rows(m), k)


def triu(m: Any, k: builtins.int = 0) -> Tensor:
    """The elements at and above a diagonal; of a vector, which is every row."""
    return _operator("triu")(_square_of_rows(m), k)


def _square_of_rows(m: Any) -> Tensor:
    x = as_tensor(m)
    return broadcast_to(x, (x.shape[0], x.shape[0])) if x.ndim == 1 else x
