# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch that a line of opdefs/aten leaves to a function: those with lists to complete, or axes to move.

Each takes `call`, which adds a call of an operator to the program, and the parameters of the line by name. What does not
change a value (the layout and the pinning of memory, a memory format) is taken and has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tenon.torch._calls import Refused

Value = Any  # a tensor of the device meta
Add = Callable[..., Any]

_REDUCTIONS = ("none", "mean", "sum")


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


def median(call: Add, self: Value, dim: int, keepdim: bool) -> Value:
    return call("kthvalue", self, (self.shape[dim] + 1) // 2, dim, keepdim)


# -- arithmetic -------------------------------------------------------------------------------------------


def divide(call: Add, self: Value, other: Any, rounding_mode: str | None) -> Value:
    if rounding_mode == "floor":
        return call("floor_divide", self, other)
    quotient = call("divide", self, other)
    if rounding_mode is None:
        return quotient
    truncated = call("trunc", quotient)
    is_whole = _holds_integers(self) and _holds_integers(other)
    return call("cast", truncated, self.dtype) if is_whole else truncated


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


# -- transforms -------------------------------------------------------------------------------------------


def _scale(lengths: Any, normalization: int) -> float:
    """0: none, 1: by the root of the number of elements, 2: by their number."""
    count = math.prod(lengths)
    return (1.0, 1.0 / math.sqrt(count), 1.0 / count)[normalization]


def fft_c2c(call: Add, self: Value, dim: Any, normalization: int, forward: bool) -> Value:
    scale = _scale([self.shape[axis] for axis in dim], normalization)
    return call("fft_c2c", self, list(dim), forward, scale)


def fft_r2c(call: Add, self: Value, dim: Any, normalization: int, onesided: bool) -> Value:
    scale = _scale([self.shape[axis] for axis in dim], normalization)
    return call("fft_r2c", self, list(dim), onesided, scale)


def fft_c2r(call: Add, self: Value, dim: Any, normalization: int, last_dim_size: int) -> Value:
    lengths = [*(self.shape[axis] for axis in dim[:-1]), last_dim_size]
    return call("fft_c2r", self, list(dim), last_dim_size, _scale(lengths, normalization))


# -- convolutions -----------------------------------------------------------------------------------------


def _batched(call: Add, self: Value, ndim: int) -> tuple[Value, bool]:
    """An input without its batch axis gets one."""
    return (call("unsqueeze", self, [0]), True) if self.ndim == ndim - 1 else (self, False)


def conv(
    call: Add,
    input: Value,
    weight: Value,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Value:
    spatial = weight.ndim - 2
    if spatial > 2:
        raise Refused("no operator has a convolution with three spatial axes")
    x, is_single = _batched(call, input, weight.ndim)
    if spatial == 1:
        out = call("conv1d", x, weight, bias, _one(stride), _one(padding), _one(dilation), groups)
    else:
        out = call(
            "conv2d", x, weight, bias, _pair(stride), _pair(padding), _pair(dilation), groups
        )
    return call("squeeze", out, [0]) if is_single else out


def conv_same(
    call: Add,
    input: Value,
    weight: Value,
    bias: Any,
    stride: Any,
    padding: str,
    dilation: Any,
    groups: int,
) -> Value:
    spatial = weight.ndim - 2
    if padding == "valid":
        return conv(call, input, weight, bias, stride, [0], dilation, groups)
    margins: list[int] = []
    for axis, apart in zip(range(spatial), _pair(dilation, spatial), strict=True):
        total = apart * (weight.shape[2 + axis] - 1)
        margins = [total // 2, total - total // 2, *margins]
    padded = pad_constant(call, input, margins, 0)
    return conv(call, padded, weight, bias, stride, [0], dilation, groups)


def conv_transpose(
    call: Add,
    input: Value,
    weight: Value,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Value:
    spatial = weight.ndim - 2
    if spatial > 2:
        raise Refused("no operator has a transposed convolution with three spatial axes")
    x, is_single = _batched(call, input, weight.ndim)
    if spatial == 1:  # one row of an image
        out = call(
            "conv_transpose2d",
            call("unsqueeze", x, [2]),
            call("unsqueeze", weight, [2]),
            bias,
            [1, _one(stride)],
            [0, _one(padding)],
            [0, _one(output_padding)],
            [1, _one(dilation)],
            groups,
        )
        out = call("squeeze", out, [2])
    else:
        out = call(
            "conv_transpose2d",
            x,
            weight,
            bias,
            _pair(stride),
            _pair(padding),
            _pair(output_padding),
            _pair(dilation),
            groups,
        )
    return call("squeeze", out, [0]) if is_single else out


def convolution(
    call: Add,
    input: Value,
    weight: Value,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    if not transposed:
        return conv(call, input, weight, bias, stride, padding, dilation, groups)
    return conv_transpose(
        call, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


# -- pools and images -------------------------------------------------------------------------------------


def max_pool_with_indices(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Any:
    x, is_single = _batched(call, self, 4)
    step = _pair(stride) if stride else None
    results = call(
        "max_pool2d_with_indices",
        x,
        _pair(kernel_size),
        step,
        _pair(padding),
        _pair(dilation),
        ceil_mode,
    )
    return [call("squeeze", each, [0]) for each in results] if is_single else results


def max_pool2d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Value:
    x, is_single = _batched(call, self, 4)
    step = _pair(stride) if stride else None
    out = call(
        "max_pool2d", x, _pair(kernel_size), step, _pair(padding), _pair(dilation), ceil_mode
    )
    return call("squeeze", out, [0]) if is_single else out


def max_pool1d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Value:
    x, is_single = _batched(call, self, 3)
    step = _one(stride) if stride else None
    out = call("max_pool1d", x, _one(kernel_size), step, _one(padding), _one(dilation), ceil_mode)
    return call("squeeze", out, [0]) if is_single else out


def avg_pool2d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Value:
    x, is_single = _batched(call, self, 4)
    step = _pair(stride) if stride else None
    out = call(
        "avg_pool2d", x, _pair(kernel_size), step, _pair(padding), ceil_mode, count_include_pad
    )
    return call("squeeze", out, [0]) if is_single else out


def avg_pool1d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Value:
    x, is_single = _batched(call, self, 3)
    step = _one(stride) if stride else None
    out = call(
        "avg_pool1d", x, _one(kernel_size), step, _one(padding), ceil_mode, count_include_pad
    )
    return call("squeeze", out, [0]) if is_single else out


def adaptive_avg_pool2d(call: Add, self: Value, output_size: Any) -> Value:
    x, is_single = _batched(call, self, 4)
    out = call("adaptive_avg_pool2d", x, _pair(output_size))
    return call("squeeze", out, [0]) if is_single else out


def adaptive_avg_pool1d(call: Add, self: Value, output_size: Any) -> Value:
    x, is_single = _batched(call, self, 3)
    out = call("adaptive_avg_pool2d", call("unsqueeze", x, [2]), [1, _one(output_size)])
    out = call("squeeze", out, [2])
    return call("squeeze", out, [0]) if is_single else out


def _upsample(
    call: Add,
    input: Value,
    output_size: Any,
    scale_factors: Any,
    mode: str,
    align_corners: bool = False,
) -> Value:
    size = None if output_size is None else list(output_size)
    factors = None if scale_factors is None else [float(factor) for factor in scale_factors]
    return call("interpolate", input, size, factors, mode, align_corners)


def upsample_nearest(call: Add, input: Value, output_size: Any, scale_factors: Any) -> Value:
    return _upsample(call, input, output_size, scale_factors, "nearest")


def upsample_linear(
    call: Add, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    return _upsample(call, input, output_size, scale_factors, "linear", align_corners)


def upsample_bilinear(
    call: Add, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    return _upsample(call, input, output_size, scale_factors, "bilinear", align_corners)


def upsample_bicubic(
    call: Add, input: Value, output_size: Any, align_corners: bool, scale_factors: Any
) -> Value:
    return _upsample(call, input, output_size, scale_factors, "bicubic", align_corners)


def grid_sampler(
    call: Add,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    outside = ("zeros", "border", "reflection")[padding_mode]
    return call("grid_sample", input, grid, mode, outside, align_corners)


# -- normalisation, softmax, losses -----------------------------------------------------------------------


def rms_norm(
    call: Add, input: Value, normalized_shape: Any, weight: Any, eps: float | None
) -> Value:
    if len(normalized_shape) != 1:
        raise Refused("it normalises several axes together")
    if eps is None:  # the distance from 1 to the next number
        eps = {"float32": 2.0**-23, "float64": 2.0**-52}[_dtype_name(input)]
    return call("rms_norm", input, weight, eps)


def softmax(call: Add, self: Value, dim: int, dtype: Any) -> Value:
    return call("softmax", _cast(call, self, dtype), dim)


def log_softmax(call: Add, self: Value, dim: int, dtype: Any) -> Value:
    return call("log_softmax", _cast(call, self, dtype), dim)


def safe_softmax(call: Add, self: Value, dim: int, dtype: Any) -> Value:
    """Rows with nothing to choose from are zeros."""
    x = _cast(call, self, dtype)
    is_empty = call("all", call("equal", x, float("-inf")), [dim], True)
    return call("masked_fill", call("softmax", x, dim), is_empty, 0.0)


def mse_loss(call: Add, self: Value, target: Value, reduction: int) -> Value:
    return call("mse_loss", self, target, _REDUCTIONS[reduction])
