# SPDX-License-Identifier: Apache-2.0
"""What several functions share: sizes per axis, and the reduction of a loss."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor, _core
from tenon._tensor.batched import Batched

Size = int | Sequence[int]


def spread(size: Size, count: int, name: str = "size") -> tuple[int, ...]:
    """One number for each of `count` axes; a single number stands for all of them."""
    if isinstance(size, int):
        return (size,) * count
    sizes = tuple(size)
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise ValueError(f"expected {name} to be one number or {count}, got {sizes}")
    return sizes


def reduced(loss: Tensor, reduction: str, caller: str) -> Tensor:
    """The mean, the sum or all elements of `loss`."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{caller}: expected reduction 'mean', 'sum' or 'none', got {reduction!r}")


def check_ndim(x: Tensor, ndim: int, layout: str, caller: str) -> None:
    if x.ndim != ndim:
        raise ValueError(f"{caller}: expected x of shape {layout}, got {tuple(x.shape)}")


def from_zero(index: Tensor, count: int) -> Tensor:
    """`index`, of which negative numbers, that operators count from the end, are `count`: what no
    operator takes."""
    return tenon.where(index < 0, count, index)


def is_readable(x: Tensor) -> bool:
    """Whether arguments may be checked by their values: not while a program is recorded, which
    would keep what it read, and not where a tensor stands for many."""
    return x.device.kind != "meta" and not isinstance(x, Batched) and not _core.is_recording()
