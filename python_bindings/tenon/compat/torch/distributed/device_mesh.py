# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.device_mesh: ranks as a grid. `mesh.mesh` is a nested list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import distributed as _dist
from tenon.compat.torch._groups import only
from tenon.distributed import DeviceMesh

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of all ranks, which meet before if they have not yet."""
    only("init_device_mesh", backend_override=(backend_override, None))
    if not _dist.is_initialized():
        _dist.init_process_group()
    return _dist.init_device_mesh(device_type, mesh_shape, mesh_dim_names=mesh_dim_names)


def expect_mesh(call: str, device_mesh: DeviceMesh | None) -> DeviceMesh:
    """There is no mesh that calls find by themselves."""
    if device_mesh is None:
        raise NotImplementedError(f"{call}: expected device_mesh, got none")
    return device_mesh
