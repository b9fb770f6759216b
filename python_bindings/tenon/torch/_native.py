# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch that a line of opdefs/aten leaves to a function: those with lists to complete, or axes to move.

Each takes `call`, which adds a call of an operator to the program, and the parameters of the line by name. What does not
change a value (the layout and the pinning of memory, a memory format) is taken and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon.jit.foreign_calls import Refused

Value = Any  # a tensor of the device meta
Add = Callable[..., Any]


def _pair(numbers: Any, count: int = 2) -> list[int]:
    listed = list(numbers) if isinstance(numbers, (list, tuple)) else [numbers]
    return listed * count if len(listed) == 1 else listed


def _one(numbers: Any) -> int:
    return numbers[0] if isinstance(numbers, (list, tuple)) else numbers


def _axes(dim: Any) -> list[int] | None:
    """No axes are all axes."""
    if dim is None:
        return None
    listed = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return listed or None


def _cast(call: Add, value: Value, dtype: Any) -> Value:
    return value if dtype is None or dtype == value.dtype else call("cast", value, dtype)


def _dtype_name(value: Value) -> str:
    return str(value.dtype).removeprefix("tenon.")


def _holds_integers(value: Any) -> bool:
    """A number, or a tensor of whole numbers."""
    if not hasattr(value, "dtype"):
        return isinstance(value, int)
    return _dtype_name(value).startswith(("int", "uint", "bool"))


# -- reductions and scans ---------------------------------------------------------------------------------


def sum(call: Add, self: Value, dtype: Any, dim: Any = None, keepdim: bool = False) -> Value:
    return call("sum", _cast(call, self, dtype), _axes(dim), keepdim)


def mean(call: Add, self: Value, dtype: Any, dim: Any = None, keepdim: bool = False) -> Value:
    return call("mean", _cast(call, self, dtype), _axes(dim), keepdim)


def prod(call: Add, self: Value, dtype: Any, dim: Any = None, keepdim: bool = False) -> Value:
    return call("prod", _cast(call, self, dtype), _axes(dim), keepdim)


def amax(call: Add, self: Value, dim: Any, keepdim: bool) -> Value:
    return call("max", self, _axes(dim), keepdim)


def amin(call: Add, self: Value, dim: Any, keepdim: bool) -> Value:
    return call("min", self, _axes(dim), keepdim)


def cumsum(call: Add, self: Value, dim: int, dtype: Any) -> Value:
    return call("cumsum", _cast(call, self, dtype), dim)


def cumprod(call: Add, self: Value, dim: int, dtype: Any) -> Value:
    return call("cumprod", _cast(call, self, dtype), dim)


def vector_norm(call: Add, self: Value, ord: float, dim: Any, keepdim: bool) -> Value:
    return call("norm", self, ord, _axes(dim), keepdim)


def norm(call: Add, self: Value, p: Any, dim: Any, keepdim: bool) -> Value:
    return call("norm", self, 2.0 if p is None else p, _axes(dim), keepdim)


def _correction(correction: Any) -> Any:
    return 1 if correction is None else correction


def std(call: Add, self: Value, dim: Any, correction: Any, keepdim: bool) -> Value:
    return call("std", self, _axes(dim), _correction(correction), keepdim)


def var(call: Add, self: Value, dim: Any, correction: Any, keepdim: bool) -> Value:
    return call("var", self, _axes(dim), _correction(correction), keepdim)


def var_unbiased(call: Add, self: Value, dim: Any, unbiased: bool, keepdim: bool) -> Value:
    return call("var", self, _axes(dim), 1 if unbiased else 0, keepdim)


def var_mean(call: Add, self: Value, dim: Any, correction: Any, keepdim: bool) -> Any:
    return call("var_mean", self, _axes(dim), _correction(correction), keepdim)


def median(call: Add, self: Value, dim: int, keepdim: bool) -> Value:
    """The lower of two in the middle; NaN, the first one, where there is any."""
    values, indices = call("kthvalue", self, (self.shape[dim] + 1) // 2, dim, keepdim)
    if _holds_integers(self):
        return [values, indices]
    has_nan = call("any", call("isnan", self), [dim], keepdim)
    first = call("argmax", self, dim, keepdim)
    return [
        call("where", has_nan, float("nan"), values),
        call("where", has_nan, first, indices),
    ]


# -- arithmetic -------------------------------------------------------------------------------------------


def divide(call: Add, self: Value, other: Any, rounding_mode: str | None) -> Value:
    if rounding_mode == "floor":
        return call("floor_divide", self, other)
    if rounding_mode is None:
        return call("divide", self, other)
    if _holds_integers(self) and _holds_integers(other):  # exact where floats are not
        whole = call("subtract", self, call("fmod", self, other))
        return call("floor_divide", whole, other)
    return call("trunc", call("divide", self, other))


def where_numbers(call: Add, condition: Value, self: Any, other: Any) -> Value:
    return call("where", condition, call("full", [], self), call("full", [], other))


def prelu(call: Add, self: Value, weight: Value) -> Value:
    """One slope for each channel, which is axis 1."""
    if weight.numel() > 1 and self.ndim > 2:
        weight = call("reshape", weight, [-1] + [1] * (self.ndim - 2))
    return call("prelu", self, weight)


# -- copies and conversions -------------------------------------------------------------------------------


def to_copy(call: Add, self: Value, dtype: Any = None, **_: Any) -> Value:
    return call("clone", self) if dtype is None else call("cast", self, dtype)


def copy(call: Add, self: Value, src: Value, non_blocking: bool) -> Value:
    converted = call("cast", src, self.dtype)
    if tuple(src.shape) == tuple(self.shape):
        return converted
    return call("clone", call("expand", converted, list(self.shape)))


def type_as(call: Add, self: Value, other: Value) -> Value:
    return _cast(call, self, other.dtype)


def nothing(call: Add, **_: Any) -> None:
    """A check of what is known while the program is built, and was found to hold when it was exported."""


def assert_scalar(call: Add, self: Any, assert_msg: str) -> None:
    """Of a number that is known; the walk refuses those that calls choose."""
    if not isinstance(self, (bool, int, float)):
        raise Refused("it checks a value that only a run knows")
    if not self:
        raise Refused(f"the model's check does not hold: {assert_msg}")


# -- new tensors ------------------------------------------------------------------------------------------


def arange(
    call: Add, end: Any, start: Any = 0, step: Any = 1, dtype: Any = None, **_: Any
) -> Value:
    return call("arange", start, end, step, dtype=dtype)


def linspace(call: Add, start: Any, end: Any, steps: int, dtype: Any = None, **_: Any) -> Value:
    return call("linspace", start, end, steps, dtype=dtype)


def eye(call: Add, n: int, m: int | None = None, dtype: Any = None, **_: Any) -> Value:
    return call("eye", n, m, dtype=dtype)


def full(call: Add, size: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Value:
    return call("full", list(size), fill_value, dtype=dtype)


def zeros(call: Add, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("zeros", list(size), dtype=dtype)


def ones(call: Add, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("ones", list(size), dtype=dtype)


def scalar_tensor(call: Add, s: Any, dtype: Any = None, **_: Any) -> Value:
    return call("full", [], s, dtype=dtype or "float32")


def full_like(call: Add, self: Value, fill_value: Any, dtype: Any = None, **_: Any) -> Value:
    return call("full", list(self.shape), fill_value, dtype=dtype or self.dtype)


def zeros_like(call: Add, self: Value, dtype: Any = None, **_: Any) -> Value:
    return call("zeros", list(self.shape), dtype=dtype or self.dtype)


def ones_like(call: Add, self: Value, dtype: Any = None, **_: Any) -> Value:
    return call("ones", list(self.shape), dtype=dtype or self.dtype)


def new_full(
    call: Add, self: Value, size: Any, fill_value: Any, dtype: Any = None, **_: Any
) -> Value:
    return call("full", list(size), fill_value, dtype=dtype or self.dtype)


def new_zeros(call: Add, self: Value, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("zeros", list(size), dtype=dtype or self.dtype)


def new_ones(call: Add, self: Value, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("ones", list(size), dtype=dtype or self.dtype)


def rand(call: Add, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("uniform", list(size), dtype=dtype)


def rand_like(call: Add, self: Value, dtype: Any = None, **_: Any) -> Value:
    return call("uniform", list(self.shape), dtype=dtype or self.dtype)


def randn(call: Add, size: Any, dtype: Any = None, **_: Any) -> Value:
    return call("normal", list(size), dtype=dtype)


def randn_like(call: Add, self: Value, dtype: Any = None, **_: Any) -> Value:
    return call("normal", list(self.shape), dtype=dtype or self.dtype)


def randperm(call: Add, n: int, dtype: Any = None, **_: Any) -> Value:
    return call("randperm", n, dtype=dtype)


# -- shapes -----------------------------------------------------------------------------------------------


def roll(call: Add, self: Value, shifts: Any, dims: Any) -> Value:
    return call("roll", self, _pair(shifts, 1), _axes(dims))


def squeeze(call: Add, self: Value, dim: Any) -> Value:
    """Axes that are longer stay."""
    named = [axis for axis in _axes(dim) or [] if self.ndim and self.shape[axis] == 1]
    return call("squeeze", self, named) if named else self


def unfold(call: Add, self: Value, dimension: int, size: int, step: int) -> Value:
    return call("sliding_window", self, dimension, size, step)


def concatenate(call: Add, tensors: Any, dim: int) -> Value:
    """An empty tensor of one axis among others is left out, as PyTorch does."""
    kept = [value for value in tensors if tuple(value.shape) != (0,)] or list(tensors)[:1]
    return call("concat", kept, dim)


def chunk(call: Add, self: Value, chunks: int, dim: int) -> Any:
    size = max(1, -(-self.shape[dim] // chunks))
    return call("split", self, [size], dim)


def split_with_sizes(call: Add, self: Value, dim: int, **sizes: Any) -> Any:
    """A list of one size is that piece alone."""
    (listed,) = sizes.values()
    start, pieces = 0, []
    for size in listed:
        pieces.append(call("narrow", self, dim, start, size))
        start += size
    return pieces


def _margins(self: Value, pad: Any) -> list[int]:
    """Two numbers for each axis, the first axis first; PyTorch begins with the last one and leaves out the first."""
    margins = [0] * (2 * self.ndim)
    for index in range(len(pad) // 2):
        axis = self.ndim - 1 - index
        margins[2 * axis], margins[2 * axis + 1] = pad[2 * index], pad[2 * index + 1]
    return margins


def pad_constant(call: Add, self: Value, pad: Any, value: Any) -> Value:
    margins = _margins(self, pad)
    if min(margins, default=0) < 0:
        cut = [max(0, -margin) for margin in margins]
        for axis in range(self.ndim):
            kept = self.shape[axis] - cut[2 * axis] - cut[2 * axis + 1]
            self = call("narrow", self, axis, cut[2 * axis], kept)
        margins = [max(0, margin) for margin in margins]
    return call("pad", self, margins, "constant", value)


def pad_reflect(call: Add, self: Value, padding: Any) -> Value:
    return call("pad", self, _margins(self, padding), "reflect")


def pad_edge(call: Add, self: Value, padding: Any) -> Value:
    return call("pad", self, _margins(self, padding), "edge")


def pad(call: Add, self: Value, pad: Any, mode: str, value: Any) -> Value:
    if mode == "constant":
        return pad_constant(call, self, pad, 0 if value is None else value)
    own = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    return call("pad", self, _margins(self, pad), own)


# -- indices ----------------------------------------------------------------------------------------------


def _integer_indices(indices: Any) -> list[int]:
    """The axes that have an index."""
    for index in indices:
        if index is not None and _dtype_name(index) in ("bool", "uint8"):
            raise Refused("with a mask as an index the shape of its result depends on data")
    return [axis for axis, index in enumerate(indices) if index is not None]


def _to_front(axes: list[int], ndim: int) -> list[int]:
    return axes + [axis for axis in range(ndim) if axis not in axes]


def index(call: Add, self: Value, indices: Any) -> Value:
    axes = _integer_indices(indices)
    given = [indices[axis] for axis in axes]
    if axes == list(range(axes[0], axes[-1] + 1)):
        return call("index", self, given, axes[0])
    # Where indices are apart, their common shape comes first.
    return call("index", call("permute", self, _to_front(axes, self.ndim)), given, 0)


def index_put(call: Add, self: Value, indices: Any, values: Value, accumulate: bool) -> Value:
    if len(indices) == 1 and indices[0] is not None and _dtype_name(indices[0]) == "bool":
        mask = indices[0]
        if values.numel() != 1 or accumulate:
            raise Refused("with a mask as an index only a single number can be written")
        mask = call("reshape", mask, list(mask.shape) + [1] * (self.ndim - mask.ndim))
        return call("where", mask, _cast(call, values, self.dtype), self)
    axes = _integer_indices(indices)
    given = [indices[axis] for axis in axes]
    if axes == list(range(axes[0], axes[-1] + 1)):
        return call("index_put", self, given, values, axis=axes[0], accumulate=accumulate)
    order = _to_front(axes, self.ndim)
    moved = call("permute", self, order)
    written = call("index_put", moved, given, values, axis=0, accumulate=accumulate)
    return call("permute", written, [order.index(axis) for axis in range(self.ndim)])


def embedding(
    call: Add,
    weight: Value,
    indices: Value,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Value:
    """The last three are about gradients alone."""
    return call("embedding", weight, indices)


def embedding_bag(
    call: Add,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: int,
) -> list[Value]:
    """The rows of all bags, without the three results that gradients alone read; they alone ask for `scale_grad_by_freq` and
    `sparse`."""
    if not include_last_offset:  # where the last bag ends
        count = call("sum", call("ones_like", indices), [0], True)
        offsets = call("concat", [offsets, _cast(call, count, offsets.dtype)], 0)
    reduce, padding = ("sum", "mean", "max")[mode], padding_idx if padding_idx >= 0 else None
    bags = call("embedding_bag", weight, indices, offsets, per_sample_weights, reduce, padding)
    return [bags]


def _cut_to(call: Add, source: Value, shape: Any) -> Value:
    for axis, length in enumerate(shape):
        if source.shape[axis] != length:
            source = call("narrow", source, axis, 0, length)
    return source


def gather(call: Add, self: Value, dim: int, index: Value, sparse_grad: bool) -> Value:
    return call("gather", self, index, dim)


def scatter(call: Add, self: Value, dim: int, index: Value, src: Value) -> Value:
    return call("scatter", self, index, _cut_to(call, src, index.shape), dim)


def scatter_value(call: Add, self: Value, dim: int, index: Value, value: Any) -> Value:
    source = call("full", list(index.shape), value, dtype=self.dtype)
    return call("scatter", self, index, source, dim)


def scatter_add(call: Add, self: Value, dim: int, index: Value, src: Value) -> Value:
    return call("scatter_add", self, index, _cut_to(call, src, index.shape), dim)


def scatter_reduce(
    call: Add, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool
) -> Value:
    source = _cut_to(call, src, index.shape)
    return call(
        "scatter_reduce", self, index, source, dim, reduce=reduce, include_self=include_self
    )
