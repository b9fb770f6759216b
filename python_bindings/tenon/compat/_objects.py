# SPDX-License-Identifier: Apache-2.0
"""Lists of objects that ranks send, in the spelling that PyTorch and Paddle share: what a rank sends is pickled, and may run
any code where it is received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import distributed as dist
from tenon.distributed import ProcessGroup


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup) -> None:
    if len(object_list) not in (0, group.size):
        raise ValueError(
            f"all_gather_object: expected a list of {group.size} objects to overwrite, or an empty one, got "
            f"{len(object_list)}"
        )
    object_list[:] = dist.all_gather_object(obj, group)


def broadcast_object_list(object_list: list[Any], src: int, group: ProcessGroup) -> None:
    told = dist.broadcast_object(list(object_list), src, group)
    if len(told) != len(object_list):
        raise ValueError(
            f"broadcast_object_list: expected {len(told)} objects, as on rank {src}, got {len(object_list)}"
        )
    object_list[:] = told


def gather_object(obj: Any, object_list: list[Any] | None, root: int, group: ProcessGroup) -> None:
    told = dist.all_gather_object(obj, group)
    if group.rank != root:
        return
    if object_list is None or len(object_list) != group.size:
        raise ValueError(f"gather_object: expected a list of {group.size} objects on rank {root}")
    object_list[:] = told


def scatter_object_list(
    out: list[Any], objects: Sequence[Any] | None, src: int, group: ProcessGroup
) -> None:
    """One object for each rank; `out` has room for one."""
    if not out:
        raise ValueError(
            "scatter_object_list: expected a list with room for one object, got an empty one"
        )
    if group.ranks[group.rank] == src and (objects is None or len(objects) != group.size):
        text = f"scatter_object_list: expected {group.size} objects on rank {src}"
        group.abort(text)
        raise ValueError(text)
    told = dist.broadcast_object(list(objects or ()), src, group)
    out[0] = told[group.rank]
