# SPDX-License-Identifier: Apache-2.0
"""Lists of objects that ranks send, in the spelling that PyTorch and Paddle share: what a rank sends is pickled, and may run
any code where it is received."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import distributed as dist
from tenon.distributed import ProcessGroup
from tenon.io.safetensors import bytes_of


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


def send_object_list(objects: Sequence[Any], dst: int, group: ProcessGroup) -> None:
    """To a rank of the job, which receives a list of as many."""
    data = tenon.frombuffer(bytearray(pickle.dumps(list(objects))), dtype=tenon.uint8)
    dist.send(tenon.tensor([data.numel()], dtype=tenon.int64), dst, group)
    dist.send(data, dst, group)


def recv_object_list(objects: list[Any], src: int, group: ProcessGroup) -> None:
    size = tenon.zeros([1], dtype=tenon.int64)
    dist.recv(size, src, group)
    data = tenon.zeros([int(size.item())], dtype=tenon.uint8)
    dist.recv(data, src, group)
    told = pickle.loads(bytes_of(data))
    if len(told) != len(objects):
        raise ValueError(
            f"recv_object_list: expected a list of {len(told)} objects to overwrite, as rank {src} sent, got "
            f"{len(objects)}"
        )
    objects[:] = told
