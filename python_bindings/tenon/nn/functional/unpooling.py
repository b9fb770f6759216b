# SPDX-License-Identifier: Apache-2.0
"""The partial inverse of max pooling, and max pooling with windows of random extent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from ._common import Size, from_zero, spread


def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `x` [N, C, L] at `indices`."""
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `x` [N, C, H, W] at `indices`, which count through the last two axes."""
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `x` [N, C, D, H, W] at `indices`, which count through the last three axes."""
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 3)


def _max_unpool(
    x: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    output_size: Sequence[int] | None,
    count: int,
) -> Tensor:
    kernel, pads = spread(kernel_size, count), spread(padding, count)
    steps = kernel if stride is None else spread(stride, count)
    lead, extents = list(x.shape[:-count]), x.shape[-count:]
    if output_size is None:
        size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(extents, steps, pads, kernel)]
    else:
        size = list(output_size)[-count:]
    flat = tenon.zeros([*lead, math.prod(size)], dtype=x.dtype, device=x.device)
    at = from_zero(indices.reshape([*lead, -1]), math.prod(size))
    out = tenon.scatter(flat, at, x.reshape([*lead, -1]), -1)
    return out.reshape([*lead, *size])


def fractional_max_pool2d(
    x: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    _random_samples: Tensor | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Max pooling of `x` [N, C, H, W] whose windows begin at random steps (Graham, 2014)."""
    samples = _samples(x, 2, generator) if _random_samples is None else _random_samples
    return _fractional(x, kernel_size, output_size, output_ratio, samples, 2)


def fractional_max_pool3d(
    x: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    _random_samples: Tensor | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Max pooling of `x` [N, C, D, H, W] whose windows begin at random steps."""
    samples = _samples(x, 3, generator) if _random_samples is None else _random_samples
    return _fractional(x, kernel_size, output_size, output_ratio, samples, 3)


def _samples(x: Tensor, count: int, generator: Any) -> Tensor:
    """Where windows begin, for each channel and each of `count` axes: numbers from 0 to 1."""
    shape = [*x.shape[:2], count]
    return tenon.uniform(shape, dtype=x.dtype, device=x.device, generator=generator)


def _fractional(
    x: Tensor,
    kernel_size: Size,
    output_size: Size | None,
    output_ratio: float | Sequence[float] | None,
    samples: Tensor,
    count: int,
) -> Tensor:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(
            f"fractional_max_pool{count}d: expected one of output_size and output_ratio"
        )
    kernel = spread(kernel_size, count)
    n, c, *extents = x.shape
    if output_size is not None:
        size = spread(output_size, count)
    else:
        ratios = (
            [output_ratio] * count
            if isinstance(output_ratio, (int, float))
            else list(output_ratio or ())
        )
        size = tuple(int(extent * ratio) for extent, ratio in zip(extents, ratios))
    # The index of every element of every window in the flattened spatial axes.
    index = tenon.zeros([n, c, *([1] * (2 * count))], dtype=tenon.int64, device=x.device)
    stride = math.prod(extents)
    for axis in range(count):
        stride //= extents[axis]
        # PyTorch's samples are (width, height): the last axis first.
        sample = samples[:, :, count - 1 - axis if count == 2 else axis]
        first = _starts(sample, extents[axis], kernel[axis], size[axis])  # [n, c, size]
        inside = tenon.arange(kernel[axis], device=x.device)
        shape = [n, c, *([1] * (2 * count))]
        shape[2 + axis], shape[2 + count + axis] = size[axis], kernel[axis]
        index = index + ((first.unsqueeze(-1) + inside) * stride).reshape(shape)
    flat = x.reshape([n, c, -1])
    windows = tenon.gather(flat, index.reshape([n, c, -1]), -1)
    return tenon.max(windows.reshape([n, c, *size, math.prod(kernel)]), -1)


def _starts(sample: Tensor, extent: int, kernel: int, count: int) -> Tensor:
    """Where the windows of one axis begin: a sequence of random steps, of which the last is at the
    end."""
    if count + kernel - 1 > extent:
        raise ValueError(f"expected output_size {count} + kernel_size {kernel} - 1 <= {extent}")
    last = tenon.full([*sample.shape, 1], extent - kernel, dtype=tenon.int64, device=sample.device)
    if count == 1:
        return last
    alpha = (extent - kernel) / (count - 1)
    sample = sample.unsqueeze(-1)
    steps = tenon.arange(count - 1, device=sample.device).cast(sample.dtype)
    starts = tenon.floor((steps + sample) * alpha) - tenon.floor(sample * alpha)
    return tenon.concat([starts.cast(tenon.int64), last], -1)
