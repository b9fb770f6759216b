# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors as boxes of their wholes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenon import Tensor

from ..dtensor import from_local
from ..mesh import DeviceMesh
from ..placements import Placement, part_of_whole
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
    """Of this rank."""
    if any(placement.is_partial() for placement in placements):
        raise ValueError(
            f"checkpoint: expected sharded tensors in Shard(dim) and Replicate(), got one in {tuple(placements)}; "
            "redistribute it first"
        )
    return Box(*part_of_whole(shape, placements, mesh.shape, mesh.get_coordinate()))
