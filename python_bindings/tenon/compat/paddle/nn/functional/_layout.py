# SPDX-License-Identifier: Apache-2.0
"""What Paddle's functions of images share: channels first or last, sizes, and margins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon._core import Tensor

_FIRST = {1: ("NCL",), 2: ("NCHW",), 3: ("NCDHW",)}
_LAST = {1: ("NLC",), 2: ("NHWC",), 3: ("NDHWC",)}


def is_last(name: str, data_format: str, count: int | None = None) -> bool:
    """Whether channels are in the last axis; the format must be one for `count` axes of space."""
    counts = (1, 2, 3) if count is None else (count,)
    first = [each for n in counts for each in _FIRST[n]] + (["NC"] if count is None else [])
    last = [each for n in counts for each in _LAST[n]]
    if data_format not in first + last:
        raise ValueError(
            f"{name}(): expected data_format {' or '.join(map(repr, first + last))}, got {data_format!r}"
        )
    return data_format in last


def first(x: Tensor) -> Tensor:
    """Channels from the last axis to the second."""
    return x.permute([0, x.ndim - 1, *range(1, x.ndim - 1)])


def last(x: Tensor) -> Tensor:
    """Channels from the second axis to the last."""
    return x.permute([0, *range(2, x.ndim), 1])


def by_format(
    name: str, x: Tensor, data_format: str, count: int | None, function: Callable[[Tensor], Any]
) -> Any:
    """`function` of `x` with channels first, its result by `data_format`."""
    if not is_last(name, data_format, count):
        return function(x)
    made = function(first(x))
    return tuple(map(last, made)) if isinstance(made, tuple) else last(made)


def numbers(value: Any) -> Any:
    """Python's numbers of numbers, lists and tensors."""
    if isinstance(value, Tensor):
        return value.tolist()
    return [numbers(each) for each in value] if isinstance(value, (list, tuple)) else value


def spread(name: str, parameter: str, size: Any, count: int) -> list[int]:
    """One number for each of `count` axes."""
    size = numbers(size)
    sizes = [size] * count if isinstance(size, int) else list(size)
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) != count or not all(isinstance(each, int) for each in sizes):
        raise ValueError(
            f"{name}(): expected {parameter} to be one whole number or {count}, got {size!r}"
        )
    return sizes


def margins(
    name: str,
    padding: Any,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    channels_last: bool = False,
) -> list[tuple[int, int]]:
    """What is added before and behind each axis of space, of all that Paddle takes for `padding`: a number,
    one for each axis, a pair for each, pairs for the axes of batch and channels too, or a word."""
    count = len(kernel)
    padding = numbers(padding)
    if isinstance(padding, str):
        word = padding.upper()
        if word == "VALID":
            return [(0, 0)] * count
        if word != "SAME":
            raise ValueError(
                f"{name}(): expected padding of numbers, 'SAME' or 'VALID', got {padding!r}"
            )
        if any(each != 1 for each in dilation):
            raise NotImplementedError(
                f"{name}(): expected a dilation of 1 beside padding='SAME', got {list(dilation)}"
            )
        pairs = []
        for extent, k, s in zip(x.shape[2:], kernel, stride, strict=True):
            total = max((-(-extent // s) - 1) * s + k - extent, 0)
            pairs.append((total // 2, total - total // 2))
        return pairs
    if isinstance(padding, int):
        return [(padding, padding)] * count
    values = list(padding)
    if values and all(isinstance(each, list) for each in values):
        if len(values) == count + 2:
            batch, rest = values[0], values[1:]
            channel, rest = (rest[-1], rest[:-1]) if channels_last else (rest[0], rest[1:])
            if any(batch) or any(channel):
                raise ValueError(
                    f"{name}(): expected no padding of batch and channels, got {padding!r}"
                )
            values = rest
        if len(values) == count and all(len(each) == 2 for each in values):
            return [(a, b) for a, b in values]
    elif len(values) == count:
        return [(each, each) for each in values]
    elif len(values) == 2 * count:
        return [(values[2 * i], values[2 * i + 1]) for i in range(count)]
    elif len(values) == 1:
        return [(values[0], values[0])] * count
    raise ValueError(
        f"{name}(): expected padding of one number, {count}, {2 * count}, or pairs of these, got {padding!r}"
    )


def padded(x: Tensor, pairs: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """`x` with margins around its axes of space, which are its last."""
    flat = [0, 0] * (x.ndim - len(pairs)) + [each for pair in pairs for each in pair]
    return tenon.pad(x, flat, "constant", value) if any(flat) else x


def split(
    x: Tensor, pairs: Sequence[tuple[int, int]], value: float = 0.0
) -> tuple[Tensor, list[int]]:
    """Margins that are alike on both sides as numbers; others are put around `x`."""
    if all(a == b for a, b in pairs):
        return x, [a for a, _ in pairs]
    return padded(x, pairs, value), [0] * len(pairs)
