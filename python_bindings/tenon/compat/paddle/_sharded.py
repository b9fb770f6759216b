# SPDX-License-Identifier: Apache-2.0
"""Sharded tensors by Paddle's names. What they do is docs/distributed.md's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon import distributed as _dist
from tenon.distributed import DeviceMesh, Partial, Placement, Replicate, Shard

__all__ = [
    "Partial",
    "Placement",
    "ProcessMesh",
    "Replicate",
    "Shard",
    "dtensor_from_local",
    "reshard",
    "shard_tensor",
    "unshard_dtensor",
]


class ProcessMesh(DeviceMesh):
    """A mesh of all ranks of the job."""

    def __init__(
        self,
        mesh: Sequence[Any] | None = None,
        dim_names: Sequence[str] | None = None,
        shape: Sequence[int] | None = None,
        process_ids: Sequence[int] | None = None,
    ) -> None:
        if mesh is None:
            if shape is None or process_ids is None:
                raise ValueError("ProcessMesh: expected mesh, or shape and process_ids")
            mesh = list(process_ids)
            for length in reversed(list(shape)[1:]):
                mesh = [mesh[i : i + length] for i in range(0, len(mesh), length)]
        super().__init__("cpu", mesh, mesh_dim_names=dim_names)

    @property
    def dim_names(self) -> list[str] | None:
        return None if self.mesh_dim_names is None else list(self.mesh_dim_names)

    @property
    def process_ids(self) -> list[int]:
        return list(self._ranks)


def shard_tensor(
    data: Any,
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool | None = None,
) -> Tensor:
    """The whole `data`, the first rank's, of which every rank keeps its part."""
    if place is not None:
        raise NotImplementedError("shard_tensor: expected place to be left out")
    x = data if isinstance(data, Tensor) else tenon.tensor(data)
    if dtype is not None:
        x = x.to(dtype)
    made = _dist.distribute_tensor(x, mesh, placements)
    if stop_gradient is not None:
        made.requires_grad_(not stop_gradient)
    return made


def dtensor_from_local(
    local_tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> Tensor:
    """The whole of which every rank gives its part."""
    return _dist.from_local(local_tensor, mesh, placements)


def reshard(dist_tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> Tensor:
    """The same tensor in other placements, on the same mesh."""
    return _dist.dtensor.redistribute(dist_tensor, mesh, placements)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The whole, as a plain tensor, on every rank."""
    return _dist.dtensor.full_tensor(dist_tensor)
