# SPDX-License-Identifier: Apache-2.0
"""Paddle's functions that select and lay out elements, with its defaults and further parameters."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.paddle._composed import flat, numbers

__all__ = """reshape view crop squeeze unsqueeze moveaxis rot90 unbind unstack diag trace slice_scatter
index_fill take_along_axis repeat_interleave unique bucketize""".split()


def reshape(x: Tensor, shape: Any) -> Tensor:
    """The elements in another shape; 0 keeps the length of this axis, and -1 is what is left."""
    lengths = numbers(shape)
    lengths = [lengths] if isinstance(lengths, builtins.int) else list(lengths)
    if any(each == 0 for each in lengths[x.ndim :]):
        raise ValueError(
            f"reshape(): expected 0 for an axis of x, which has {x.ndim}, got {lengths}"
        )
    return x.reshape([x.shape[i] if each == 0 else each for i, each in enumerate(lengths)])


def view(x: Tensor, shape_or_dtype: Any) -> Tensor:
    """The same memory by another shape, or as elements of another dtype."""
    if isinstance(shape_or_dtype, (list, tuple)):
        return x.view(list(shape_or_dtype))
    return _operator("view_dtype")(x, _core.dtype(shape_or_dtype))


def crop(x: Tensor, shape: Any = None, offsets: Any = None) -> Tensor:
    """A part that begins at the offsets, 0 by default; -1 is the length to the end."""
    begins = [0] * x.ndim if offsets is None else numbers(offsets)
    wanted = list(x.shape) if shape is None else numbers(shape)
    wanted = [wanted] if isinstance(wanted, builtins.int) else list(wanted)
    begins = [begins] if isinstance(begins, builtins.int) else list(begins)
    if len(wanted) != x.ndim or len(begins) != x.ndim:
        raise ValueError(
            f"crop(): expected shape and offsets of {x.ndim} axes, got {wanted} and {begins}"
        )
    sizes = [x.shape[i] - begins[i] if n == -1 else n for i, n in enumerate(wanted)]
    if any(not 0 <= b <= b + n <= x.shape[i] for i, (b, n) in enumerate(zip(begins, sizes))):
        raise ValueError(
            f"crop(): expected a part of shape {tuple(x.shape)}, got {sizes} from {begins}"
        )
    return x[tuple(slice(b, b + n) for b, n in zip(begins, sizes))].clone()


def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """Without axes of length 1; other axes that are named stay."""
    if axis is None:
        return _operator("squeeze")(x, None)
    axes = numbers(axis)
    axes = [axes] if isinstance(axes, builtins.int) else list(axes)
    kept = [each for each in axes if x.shape[each] == 1]
    return _operator("squeeze")(x, kept) if kept else x


def unsqueeze(x: Tensor, axis: Any) -> Tensor:
    """New axes of length 1, put in one after another."""
    axes = numbers(axis)
    for each in [axes] if isinstance(axes, builtins.int) else axes:
        x = _operator("unsqueeze")(x, each)
    return x


def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved elsewhere."""
    return _operator("movedim")(x, source, destination)


def rot90(x: Tensor, k: builtins.int = 1, axes: Sequence[builtins.int] = (0, 1)) -> Tensor:
    """Rotates by quarters from the first axis to the second."""
    if len(axes) != 2:
        raise ValueError(f"rot90(): expected two axes, got {list(axes)}")
    return _operator("rot90")(x, k, *axes).clone()


def unbind(input: Tensor, axis: builtins.int = 0) -> list[Tensor]:
    """The slices along an axis."""
    return list(_operator("unbind")(input, axis))


def unstack(x: Tensor, axis: builtins.int = 0, num: builtins.int | None = None) -> list[Tensor]:
    """The slices along an axis, which has the length `num` if that is given."""
    if num is not None and num != x.shape[axis]:
        raise ValueError(f"unstack(): expected num to be {x.shape[axis]}, got {num}")
    return list(_operator("unbind")(x, axis))


def diag(x: Tensor, offset: builtins.int = 0, padding_value: Any = 0) -> Tensor:
    """A diagonal of a matrix, or a matrix with this diagonal and `padding_value` elsewhere."""
    if x.ndim != 1 or padding_value == 0:
        return _operator("diag")(x, offset)
    size = x.shape[0] + abs(offset)
    rest = _operator("full")([size, size], padding_value, dtype=x.dtype)
    return _operator("diagonal_scatter")(rest, x, offset)


def trace(
    x: Tensor, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1
) -> Tensor:
    """The sum of the diagonal of two axes."""
    return _operator("diagonal")(x, offset, axis1, axis2).sum(-1).to(dtype=x.dtype)


def slice_scatter(
    x: Tensor, value: Tensor, axes: Any, starts: Any, ends: Any, strides: Any
) -> Tensor:
    """A copy with `value` in a part along some axes."""
    selected: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(*map(numbers, (axes, starts, ends, strides)), strict=True):
        selected[axis] = slice(start, end, step)
    made = x.clone()
    made[tuple(selected)] = value
    return made


def index_fill(x: Tensor, index: Tensor, axis: builtins.int, value: Any) -> Tensor:
    """A copy with `value` in the slices at `index` along an axis."""
    value = value.item() if isinstance(value, Tensor) else value
    return _operator("index_fill")(x, axis, index, value)


def take_along_axis(
    arr: Tensor, indices: Tensor, axis: builtins.int, broadcast: bool = True
) -> Tensor:
    """Elements at `indices` along `axis`; the other axes are broadcast, or with `broadcast` false those of
    the indices reach less far."""
    if not broadcast:
        return _operator("gather")(arr, indices, axis)
    arr, indices = aligned(arr, indices, axis)
    return _operator("gather")(arr, indices, axis)


def aligned(arr: Tensor, indices: Tensor, axis: builtins.int) -> tuple[Tensor, Tensor]:
    """Both with the axes but `axis` broadcast to those of the other."""
    if indices.ndim != arr.ndim:
        raise ValueError(
            f"expected indices of {arr.ndim} axes, as the tensor has, got {indices.ndim}"
        )
    axis %= arr.ndim
    shapes = [[1 if i == axis else n for i, n in enumerate(each.shape)] for each in (arr, indices)]
    lengths = list(tenon.broadcast_shapes(*map(tuple, shapes)))
    both = []
    for each in (arr, indices):
        lengths[axis] = each.shape[axis]
        both.append(_operator("expand")(each, lengths))
    return both[0], both[1]


def repeat_interleave(
    x: Tensor, repeats: Any, axis: builtins.int | None = None, output_size: Any = None
) -> Tensor:
    """Each element repeated."""
    x, axis = flat(x, axis)
    if not isinstance(repeats, Tensor):
        repeats = _core.tensor(numbers(repeats), dtype=_core.int64)
    if repeats.numel() == 1:
        repeats = _operator("expand")(repeats.reshape(1), [x.shape[axis]])
    made = tenon.array_api.repeat(x, repeats, axis=axis)
    if output_size is not None and output_size != made.shape[axis]:
        raise ValueError(
            f"repeat_interleave(): expected output_size {made.shape[axis]}, got {output_size}"
        )
    return made


def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    dtype: Any = "int64",
    sorted: bool = True,
) -> Any:
    """The different elements, or slices along an axis, in ascending order, and what is wanted: indices,
    inverse as a vector, and counts, in `dtype`."""
    wanted_dtype = _core.dtype(dtype)
    if wanted_dtype not in (_core.int32, _core.int64):
        raise TypeError(f"unique(): expected dtype int32 or int64, got {dtype}")
    if isinstance(axis, (list, tuple)):
        axis = axis[0] if axis else None
    if not sorted:
        raise NotImplementedError("unique(): expected sorted=True, got False")
    found = tenon.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    values, index, inverse, counts = found
    results = [values]
    for part, is_wanted in (
        (index, return_index),
        (inverse.reshape(-1), return_inverse),
        (counts, return_counts),
    ):
        if is_wanted:
            results.append(part.to(dtype=wanted_dtype))
    return tuple(results) if len(results) > 1 else results[0]


def bucketize(
    x: Tensor, sorted_sequence: Tensor, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Where elements would go in an ascending vector."""
    if sorted_sequence.ndim != 1:
        raise ValueError(f"bucketize(): expected a vector, got {sorted_sequence.ndim} axes")
    found = _operator("bucketize")(x, sorted_sequence, right=right)
    return found.to(dtype=_core.int32) if out_int32 else found
