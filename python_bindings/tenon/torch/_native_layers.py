# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch that a line of opdefs/aten leaves to a function, of layers: transforms, convolutions, pools, images, normalisation.
As in _native.py, each takes `call` and the parameters of the line by name."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon.jit.foreign_calls import Refused
from tenon.torch._native import Add, Value, _cast, _dtype_name, _one, _pair, pad_constant

_REDUCTIONS = ("none", "mean", "sum")


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
    x, is_single = _batched(call, input, weight.ndim)
    if spatial == 1:
        out = call("conv1d", x, weight, bias, _one(stride), _one(padding), _one(dilation), groups)
    else:
        sizes = (_pair(each, spatial) for each in (stride, padding, dilation))
        out = call(f"conv{spatial}d", x, weight, bias, *sizes, groups)
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
        sizes = (_pair(each, spatial) for each in (stride, padding, output_padding, dilation))
        out = call(f"conv_transpose{spatial}d", x, weight, bias, *sizes, groups)
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


# -- pools along three axes -----------------------------------------------------------------------------


def max_pool3d_with_indices(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Any:
    x, is_single = _batched(call, self, 5)
    step = _pair(stride, 3) if stride else None
    kernel, margins, apart = (_pair(each, 3) for each in (kernel_size, padding, dilation))
    results = call("max_pool3d_with_indices", x, kernel, step, margins, apart, ceil_mode)
    return [call("squeeze", each, [0]) for each in results] if is_single else results


def max_pool3d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Value:
    settings = kernel_size, stride, padding, dilation, ceil_mode
    values: Value = max_pool3d_with_indices(call, self, *settings)[0]
    return values


def avg_pool3d(
    call: Add,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Value:
    x, is_single = _batched(call, self, 5)
    step = _pair(stride, 3) if stride else None
    kernel, margins = _pair(kernel_size, 3), _pair(padding, 3)
    out = call("avg_pool3d", x, kernel, step, margins, ceil_mode, count_include_pad)
    return call("squeeze", out, [0]) if is_single else out


def adaptive_avg_pool3d(call: Add, self: Value, output_size: Any) -> Value:
    """Means of windows that are all of one size."""
    sizes, parts = list(self.shape)[-3:], _pair(output_size, 3)
    parts = [size if part is None else part for size, part in zip(sizes, parts, strict=True)]
    if 0 in parts or any(size % part for size, part in zip(sizes, parts, strict=True)):
        raise Refused("its windows are not all of one size")
    window = [size // part for size, part in zip(sizes, parts, strict=True)]
    return avg_pool3d(call, self, window, window, [0], False, True)


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
    if eps is None:
        if _dtype_name(input) not in ("float32", "float64"):
            raise Refused(f"with eps=None in {_dtype_name(input)}; give eps")
        eps = tenon.finfo(input.dtype).eps
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
