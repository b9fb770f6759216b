# SPDX-License-Identifier: Apache-2.0
"""Which site meets which through each element of a kernel. Sites are numbered in a grid that is as much larger as the kernel
reaches, so that a step through the kernel is one difference of numbers everywhere, and no site is taken for one in the row
beside it. Numbers are found in the sorted list of all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor


class Pairs(NamedTuple):
    """For each element of a kernel, in order, the sites that it takes and gives, and what the given ones are."""

    source: list[Tensor]
    target: list[Tensor]
    indices: Tensor  # [1 + axes, sites] of the result
    shape: list[int]  # of the grid of the result


def _numbers(indices: Tensor, sizes: Sequence[int], margins: Sequence[int]) -> Tensor:
    """One number for each site [batch, ...] in a grid with margins on both sides."""
    widths = [size + 2 * margin for size, margin in zip(sizes, margins)]
    if indices.shape[1] and math.prod([int(indices[0].max().item()) + 1, *widths]) >= 2**63:
        raise ValueError(
            f"sparse convolution: expected a grid of fewer than 2^63 sites, got {list(sizes)}"
        )
    number = indices[0]
    for axis, width in enumerate(widths):
        number = number * width + (indices[axis + 1] + margins[axis])
    return number


def _steps(kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, ...]]:
    """How far each element of a kernel is from the first one, along each axis."""
    ranges = [range(size) for size in kernel]
    return [
        tuple(at * gap for at, gap in zip(place, dilation)) for place in itertools.product(*ranges)
    ]


def submanifold_pairs(
    indices: Tensor, sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int]
) -> Pairs:
    """Sites give to those that are there alone. What is found through an element of the kernel is found, the other way
    round, through the opposite one, so that half of them are searched."""
    margins = [(size - 1) // 2 * gap for size, gap in zip(kernel, dilation)]
    numbers = _numbers(indices, sizes, margins)
    widths = [size + 2 * margin for size, margin in zip(sizes, margins)]
    steps = _steps(kernel, dilation)
    everything = tenon.arange(indices.shape[1], device=indices.device)
    source, target = [everything] * len(steps), [everything] * len(steps)
    half = len(steps) // 2
    for k in range(half if indices.shape[1] else 0):
        difference = 0
        for step, margin, width in zip(steps[k], margins, widths):
            difference = difference * width + (step - margin)
        at, place = tenon.sorted_matches(numbers, numbers + difference)
        source[k], target[k] = place, at
        source[-1 - k], target[-1 - k] = at, place
    return Pairs(source, target, indices, list(sizes))


def grown_sizes(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """The sizes of the grid of a convolution's result."""
    result = [
        (size + 2 * pad - gap * (width - 1) - 1) // by + 1
        for size, width, by, pad, gap in zip(sizes, kernel, stride, padding, dilation)
    ]
    if min(result) < 1:
        raise ValueError(
            f"sparse convolution: expected a grid that the kernel fits in, got sizes {list(sizes)} "
            f"with padding {list(padding)} for a kernel {list(kernel)} of dilation {list(dilation)}"
        )
    return result


def grown_pairs(
    indices: Tensor,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Pairs:
    """Sites give to all that the kernel reaches: those are the sites of the result."""
    shape = grown_sizes(sizes, kernel, stride, padding, dilation)
    source, targets = [], []
    none = [0] * len(shape)
    for step in _steps(kernel, dilation):
        is_met = tenon.ones([indices.shape[1]], dtype=tenon.bool, device=indices.device)
        along = [indices[0]]
        for axis, size in enumerate(shape):
            shifted = indices[axis + 1] + (padding[axis] - step[axis])
            place = shifted // stride[axis]
            is_met = is_met & (shifted >= 0) & (place < size) & (place * stride[axis] == shifted)
            along.append(place)
        at = tenon.nonzero(is_met).T[0]
        source.append(at)
        targets.append(_numbers(tenon.stack(along)[:, at], shape, none))
    every: Any = tenon.unique(tenon.concat(targets))
    target = [tenon.searchsorted(every, numbers) for numbers in targets]
    found: list[Tensor] = []
    rest = every
    for size in reversed(shape):
        found.append(rest % size)
        rest = rest // size
    return Pairs(source, target, tenon.stack([rest, *reversed(found)]), shape)
