# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle.nn.functional._layout import by_format, margins, padded, split, spread

__all__ = """adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d
max_unpool1d max_unpool2d max_unpool3d""".split()

_F = tenon.nn.functional
_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


def _check(name: str, x: Tensor, count: int) -> None:
    if x.ndim != count + 2:
        raise ValueError(f"{name}(): expected x of {count + 2} axes, got shape {tuple(x.shape)}")


def _windows(
    name: str, x: Tensor, count: int, kernel_size: Any, stride: Any, padding: Any, last: bool
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    _check(name, x, count)
    kernel = spread(name, "kernel_size", kernel_size, count)
    step = kernel if stride is None else spread(name, "stride", stride, count)
    pairs = margins(name, padding, x, kernel, step, [1] * count, last)
    return kernel, step, pairs


def _average(
    name: str,
    count: int,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    exclusive: bool,
    divisor_override: float | None,
    last: bool,
) -> Tensor:
    kernel, step, pairs = _windows(name, x, count, kernel_size, stride, padding, last)
    pool = getattr(_F, f"avg_pool{count}d")
    area = 1
    for each in kernel:
        area *= each
    if ceil_mode or any(a != b for a, b in pairs):
        return _uneven(count, x, kernel, step, pairs, ceil_mode, exclusive, divisor_override)
    pads = [a for a, _ in pairs]
    made = pool(x, kernel, step, pads, False, not exclusive)
    return made if divisor_override is None else made * (area / float(divisor_override))


def _uneven(
    count: int,
    x: Tensor,
    kernel: list[int],
    step: list[int],
    pairs: list[tuple[int, int]],
    ceil_mode: bool,
    exclusive: bool,
    divisor_override: float | None,
) -> Tensor:
    """Sums of windows of explicit margins, over the number of elements that count."""
    area = 1
    for each in kernel:
        area *= each
    more = []
    for extent, k, s, (a, b) in zip(x.shape[2:], kernel, step, pairs, strict=True):
        rest = (extent + a + b - k) % s if ceil_mode else 0
        more.append((a, b + (s - rest if rest else 0)))
    pool = getattr(_F, f"avg_pool{count}d")
    total = pool(padded(x, more), kernel, step, [0] * count) * area
    ones = tenon.ones([1, 1, *x.shape[2:]], dtype=x.dtype, device=x.device)
    if not exclusive:  # margins count, what lies behind them does not
        ones = padded(ones, pairs, 1.0)
        more = [(0, b - d) for (_, b), (_, d) in zip(more, pairs, strict=True)]
    made = total / (pool(padded(ones, more), kernel, step, [0] * count) * area)
    return made if divisor_override is None else made * (area / float(divisor_override))


def _avg_pool(count: int) -> Callable[..., Tensor]:
    name = f"avg_pool{count}d"

    def function(
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: float | None = None,
        data_format: str = _FORMATS[count],
    ) -> Tensor:
        last = data_format.endswith("C")

        def pool(y: Tensor) -> Tensor:
            return _average(
                name,
                count,
                y,
                kernel_size,
                stride,
                padding,
                ceil_mode,
                exclusive,
                divisor_override,
                last,
            )

        return by_format(name, x, data_format, count, pool)

    function.__doc__ = """Means of windows; margins do not count where `exclusive` is true. A divisor takes the place of
    the size of a window: what has fewer elements that count stays as much larger."""
    return function


avg_pool2d, avg_pool3d = _avg_pool(2), _avg_pool(3)
_avg_pool1d = _avg_pool(1)


def avg_pool1d(
    x: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """Means of windows; margins do not count where `exclusive` is true."""
    return _avg_pool1d(x, kernel_size, stride, padding, ceil_mode, exclusive)


def _max_pool(count: int) -> Callable[..., Any]:
    name = f"max_pool{count}d"

    def function(
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = _FORMATS[count],
    ) -> Any:
        last = data_format.endswith("C")

        def pool(y: Tensor) -> Any:
            kernel, step, pairs = _windows(name, y, count, kernel_size, stride, padding, last)
            if return_mask and any(a != b for a, b in pairs):
                raise NotImplementedError(
                    f"{name}(): expected equal margins on both sides beside return_mask, got {pairs}"
                )
            lowest = -float("inf") if y.dtype.is_floating_point else tenon.iinfo(y.dtype).min
            y, pads = split(y, pairs, lowest)
            if return_mask:
                found = getattr(_F, f"{name}_with_indices", None)
                found = tenon.max_pool2d_with_indices if found is None else found
                values, indices = found(y, kernel, step, pads, [1] * count, ceil_mode)
                return values, indices.to(dtype=tenon.int32)
            return getattr(_F, name)(y, kernel, step, pads, [1] * count, ceil_mode)

        if return_mask and last:
            raise ValueError(f"{name}(): expected channels first beside return_mask")
        return by_format(name, x, data_format, count, pool)

    function.__doc__ = (
        "The largest elements of windows, and where they are in a plane if requested."
    )
    return function


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


def _adaptive(count: int, kind: str) -> Callable[..., Any]:
    name = f"adaptive_{kind}_pool{count}d"

    def size_of(x: Tensor, output_size: Any) -> list[int]:
        _check(name, x, count)
        if isinstance(output_size, (list, tuple)):
            output_size = [n if each is None else each for n, each in zip(x.shape[2:], output_size)]
        return spread(name, "output_size", output_size, count)

    def average(x: Tensor, output_size: Any, data_format: str = _FORMATS[count]) -> Tensor:
        return by_format(
            name, x, data_format, count, lambda y: getattr(_F, name)(y, size_of(y, output_size))
        )

    def largest(x: Tensor, output_size: Any, return_mask: bool = False) -> Tensor:
        if return_mask:
            raise NotImplementedError(f"{name}(): expected return_mask=False, got {return_mask!r}")
        return getattr(_F, name)(x, size_of(x, output_size))

    average.__doc__ = largest.__doc__ = f"{kind} of as many windows as the output has elements."
    return average if kind == "avg" else largest


adaptive_avg_pool1d, adaptive_avg_pool2d = _adaptive(1, "avg"), _adaptive(2, "avg")
adaptive_avg_pool3d = _adaptive(3, "avg")
adaptive_max_pool1d, adaptive_max_pool2d = _adaptive(1, "max"), _adaptive(2, "max")
adaptive_max_pool3d = _adaptive(3, "max")


def _unpool(count: int) -> Callable[..., Tensor]:
    name = f"max_unpool{count}d"

    def function(
        x: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        data_format: str = _FORMATS[count],
        output_size: Any = None,
    ) -> Tensor:
        if data_format != _FORMATS[count]:
            raise ValueError(
                f"{name}(): expected data_format {_FORMATS[count]!r}, got {data_format!r}"
            )
        kernel = spread(name, "kernel_size", kernel_size, count)
        step = kernel if stride is None else spread(name, "stride", stride, count)
        pads = spread(name, "padding", padding, count)
        size = None if output_size is None else [int(each) for each in output_size][-count:]
        indices = indices.to(dtype=tenon.int64)
        return getattr(_F, name)(x, indices, kernel, step, pads, size)

    function.__doc__ = "Elements put back to where max_pool took them from, zeros elsewhere."
    return function


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)
