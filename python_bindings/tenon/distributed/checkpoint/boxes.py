# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors: where they begin, and how large they are, along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenon import Tensor


class Box(NamedTuple):
    """The elements from `offset` on, `size` of them along each axis."""

    offset: tuple[int, ...]
    size: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.size)

    def within(self, other: Box) -> Box:
        """What both have; empty if nothing."""
        start = [max(a, b) for a, b in zip(self.offset, other.offset, strict=True)]
        ends = [
            min(a + m, b + n)
            for a, m, b, n in zip(self.offset, self.size, other.offset, other.size, strict=True)
        ]
        return Box(tuple(start), tuple(max(e - s, 0) for s, e in zip(start, ends, strict=True)))

    def of(self, tensor: Tensor, origin: Sequence[int]) -> Tensor:
        """These elements of a tensor whose first one lies at `origin`."""
        slices = [
            slice(o - first, o - first + n)
            for o, first, n in zip(self.offset, origin, self.size, strict=True)
        ]
        return tensor[tuple(slices)] if slices else tensor


def whole(shape: Sequence[int]) -> Box:
    return Box((0,) * len(shape), tuple(shape))


@dataclass(frozen=True)
class Piece:
    """A tensor that is a part of a larger one, which has `shape` and no rank has whole: from `offset` on.

    In what checkpoints save and load it stands where a tensor does.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    offset: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "offset", tuple(int(n) for n in self.offset))
        box = self.box
        if len(self.shape) != len(self.offset) or len(self.shape) != len(box.size):
            raise ValueError(
                f"Piece: expected as many axes of tensor, shape and offset, got {box.size}, {self.shape} and {self.offset}"
            )
        if any(
            o < 0 or o + n > s for o, n, s in zip(self.offset, box.size, self.shape, strict=True)
        ):
            raise ValueError(
                f"Piece: expected a part of a tensor of shape {self.shape}, got {box.size} from {self.offset} on"
            )

    @property
    def box(self) -> Box:
        return Box(tuple(self.offset), tuple(self.tensor.shape))


def overlap(boxes: Sequence[Box]) -> tuple[Box, Box] | None:
    """Two that have an element in common."""
    ordered = sorted(box for box in boxes if box.elements)
    for i, first in enumerate(ordered):
        for second in ordered[i + 1 :]:
            if first.size and second.offset[0] >= first.offset[0] + first.size[0]:
                break  # they begin later and later
            if first.within(second).elements:
                return first, second
    return None
