# SPDX-License-Identifier: Apache-2.0
"""Where a tensor is along an axis of a mesh: cut, whole, or a sum that is not made yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

_REDUCTIONS = {"sum": 0, "min": 2, "max": 3, "avg": 4}


class Placement:
    """Base of Shard, Replicate and Partial."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        return isinstance(self, Partial)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Axis `dim` of the tensor is cut: of `size` elements rank r of n has those from size * r // n to
    size * (r + 1) // n."""

    dim: int

    def __repr__(self) -> str:
        return f"Shard({self.dim})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Every rank has the whole."""

    def __repr__(self) -> str:
        return "Replicate()"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Every rank has a tensor of the whole's shape, and the whole is their 'sum', 'max', 'min' or 'avg'."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in _REDUCTIONS:
            raise ValueError(
                f"Partial: expected 'sum', 'max', 'min' or 'avg', got {self.reduce_op!r}"
            )

    def __repr__(self) -> str:
        return f"Partial('{self.reduce_op}')"


def words_of(placements: Sequence[Placement], mesh_ndim: int, ndim: int) -> list[int]:
    """As tenon/services/sharding.h has them; axes that count from the end become those from the front."""
    placements = list(placements)
    if len(placements) != mesh_ndim or not all(isinstance(p, Placement) for p in placements):
        raise ValueError(
            f"placements: expected Shard(dim), Replicate() or Partial() for each of the {mesh_ndim} axes of the "
            f"mesh, got {placements}"
        )
    words = []
    for placement in placements:
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise IndexError(
                    f"Shard: expected an axis of a tensor of {ndim} axes, got {placement.dim}"
                )
            words.append(1 | placement.dim % ndim << 8)
        elif isinstance(placement, Partial):
            words.append(2 | _REDUCTIONS[placement.reduce_op] << 8)
        else:
            words.append(0)
    return words


def placement_of(word: int) -> Placement:
    kind, value = word & 255, word >> 8
    if kind == 0:
        return Replicate()
    if kind == 1:
        return Shard(value)
    return Partial(next(name for name, number in _REDUCTIONS.items() if number == value))


def part_of_whole(
    shape: Sequence[int],
    placements: Sequence[Placement],
    sizes: Sequence[int],
    coordinates: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the part of a rank begins in a whole of `shape`, and its shape. The rank is at `coordinates` of a mesh of
    `sizes`, whose axes cut one after the other; Partial() counts as Replicate()."""
    offset, size = [0] * len(shape), list(shape)
    for placement, own, ranks in zip(placements, coordinates, sizes, strict=True):
        if isinstance(placement, Shard):
            dim = placement.dim
            begin, end = size[dim] * own // ranks, size[dim] * (own + 1) // ranks
            offset[dim], size[dim] = offset[dim] + begin, end - begin
    return tuple(offset), tuple(size)
