# SPDX-License-Identifier: Apache-2.0
"""Small integers times a scale, a number at a time."""

import numpy as np

from .convolutions import conv2d


def _beside(values, x, axis):
    values = np.asarray(values)
    return (
        values
        if values.ndim == 0
        else values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    )


def _levels(x, scale, zero_point, axis):
    zero = 0 if zero_point is None else _beside(zero_point, x, axis)
    return np.round(x / _beside(scale, x, axis)) + zero, zero


def quantize_linear(x, scale, zero_point=None, axis=1, dtype="int8"):
    limits = np.iinfo(dtype)
    level, _ = _levels(x, scale, zero_point, axis)
    return np.clip(level, limits.min, limits.max).astype(dtype)


def dequantize_linear(x, scale, zero_point=None, axis=1):
    zero = 0 if zero_point is None else _beside(zero_point, x, axis).astype(int)
    return ((x.astype(int) - zero) * _beside(scale, x, axis)).astype(np.asarray(scale).dtype)


def fake_quantize(x, scale, zero_point=None, quant_min=-128, quant_max=127, axis=1):
    level, zero = _levels(x, scale, zero_point, axis)
    out = (np.clip(level, quant_min, quant_max) - zero) * _beside(scale, x, axis)
    return out.astype(x.dtype)


def fake_quantize_abs_max(x, bits=8, axis=None):
    others = None if axis is None else tuple(i for i in range(x.ndim) if i != axis)
    levels = 2 ** (bits - 1) - 1
    scale = (np.abs(x).max(axis=others) / levels).astype(x.dtype)
    return fake_quantize(x, scale, None, -levels, levels, axis), scale


def weight_quantize(weight, bits=8, group_size=None):
    rows, columns = weight.shape
    group = group_size or columns
    levels = 2 ** (bits - 1) - 1
    parts = weight.reshape(rows, -1, group)
    scale = (np.abs(parts).max(-1) / levels).astype(weight.dtype)
    numbers = np.round(parts / scale[..., None]).astype(np.int8).reshape(rows, columns)
    if bits == 4:
        numbers = (numbers[:, ::2] & 15) | (numbers[:, 1::2] << 4)
    return numbers, scale if group_size else scale[:, 0]


def weight_dequantize(quantized, scale, bits=8, group_size=None):
    numbers = quantized.astype(int)
    if bits == 4:
        low, high = numbers & 15, numbers >> 4
        numbers = np.stack([low - 16 * (low > 7), high], -1).reshape(len(numbers), -1)
    group = group_size or numbers.shape[1]
    return (numbers * np.repeat(scale.reshape(len(numbers), -1), group, 1)).astype(scale.dtype)


def weight_only_linear(x, quantized, scale, bias=None, bits=8, group_size=None):
    out = x @ weight_dequantize(quantized, scale, bits, group_size).T
    return out if bias is None else out + bias


def conv2d_integer(
    x, weight, x_zero_point=None, weight_zero_point=None, stride=1, padding=0, dilation=1, groups=1
):
    points = (x_zero_point, weight_zero_point)
    x, weight = (
        each.astype(np.int64) - (0 if point is None else np.reshape(point, (-1, 1, 1, 1)))
        for each, point in zip((x, weight), points, strict=True)
    )
    return conv2d(x, weight, None, stride, padding, dilation, groups).astype(np.int32)


def linear_fp8(x, weight, scale, bias=None, x_scale=None, block=None, activations="float"):
    """Without the rounding of activations, for which NumPy has no dtype (test_float8_products.py)."""
    if block is not None:
        scale = np.repeat(np.repeat(scale, block[0], 0), block[1], 1)
        scale = scale[: weight.shape[0], : weight.shape[1]]
    elif np.ndim(scale):
        scale = np.reshape(scale, (-1, 1))
    out = x @ (weight * scale).T
    return out if bias is None else out + bias
