# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors as boxes of their wholes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenon import Tensor

from ..dtensor import from_local
from ..mesh import DeviceMesh
from ..placements import Placement, Shard
from .boxes import Box


def part_of(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of the whole, and where in it this rank's part begins."""
    shape = tuple(tensor.shape)
    return shape, _box(shape, tensor.device_mesh, tensor.placements).offset


def read_sharded(
    read: Callable[[Box], Tensor],
    shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
) -> Tensor:
    """A tensor in `placements`, of which this rank reads its part."""
    return from_local(read(_box(shape, mesh, placements)), mesh, placements, shape=shape)


def _box(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> Box:
    """Of this rank: axes of the mesh cut one after the other."""
    offset, size = [0] * len(shape), list(shape)
    for placement, own, ranks in zip(placements, mesh.get_coordinate(), mesh.shape, strict=True):
        if isinstance(placement, Shard):
            dim = placement.dim
            begin, end = size[dim] * own // ranks, size[dim] * (own + 1) // ranks
            offset[dim], size[dim] = offset[dim] + begin, end - begin
        elif placement.is_partial():
            raise ValueError(
                f"checkpoint: expected sharded tensors in Shard(dim) and Replicate(), got one in {tuple(placements)}; "
                "redistribute it first"
            )
    return Box(tuple(offset), tuple(size))
