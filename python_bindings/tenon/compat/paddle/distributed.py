# SPDX-License-Identifier: Apache-2.0
"""Calls of several ranks by Paddle's names, with its parameters: calls write into tensors that are given and return a task
with `wait()`. What they do is docs/distributed.md's.

    from tenon.compat import paddle
    paddle.distributed.init_parallel_env()
    paddle.distributed.all_reduce(x, op=paddle.distributed.ReduceOp.MAX)
"""

from __future__ import annotations

import datetime
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon import distributed as _dist
from tenon.compat import _collectives, _objects
from tenon.compat.paddle import fleet
from tenon.distributed import ProcessGroup as Group
from tenon.distributed import Work, destroy_process_group, is_initialized

from ._sharded import (
    Partial,
    Placement,
    ProcessMesh,
    Replicate,
    Shard,
    dtensor_from_local,
    reshard,
    shard_tensor,
    unshard_dtensor,
)

__all__ = [
    "Group",
    "P2POp",
    "ParallelEnv",
    "Partial",
    "Placement",
    "ProcessMesh",
    "ReduceOp",
    "Replicate",
    "Shard",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "dtensor_from_local",
    "fleet",
    "gather",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "init_parallel_env",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "load_state_dict",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reshard",
    "save_state_dict",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "shard_tensor",
    "shutdown_process_group",
    "spawn",
    "stream",
    "unshard_dtensor",
    "wait",
]


class ReduceOp:
    """Names of reductions."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "mean"


def _task(result: Any, sync_op: bool) -> Work:
    return Work(None) if sync_op else result


def is_available() -> bool:
    return True


def init_parallel_env(nccl_config: Any = None) -> Group:
    """The group of all ranks, which is made at the first call."""
    if nccl_config is not None:
        raise NotImplementedError("init_parallel_env: expected nccl_config to be left out")
    return _dist.world() if is_initialized() else _dist.init_process_group()


def get_rank(group: Group | None = None) -> int:
    """Without a group of ranks: 0, as Paddle has it."""
    return _dist.get_rank(group) if group is not None or is_initialized() else 0


def get_world_size(group: Group | None = None) -> int:
    return _dist.get_world_size(group) if group is not None or is_initialized() else 1


def get_backend(group: Group | None = None) -> str:
    _ = group or _dist.world()
    return "GLOO"


class ParallelEnv:
    """Which rank this process is."""

    @property
    def rank(self) -> int:
        return get_rank()

    @property
    def world_size(self) -> int:
        return get_world_size()

    local_rank, nranks = rank, world_size


def new_group(
    ranks: Sequence[int] | None = None,
    backend: str | None = None,
    timeout: datetime.timedelta | None = None,
) -> Group | None:
    """Who is not in `ranks` gets None."""
    if backend not in (None, "gloo", "nccl"):
        raise NotImplementedError(f"new_group: expected backend 'gloo' or 'nccl', got {backend!r}")
    if timeout is not None:
        raise NotImplementedError(
            "new_group: expected timeout to be left out: that of the group of all ranks counts"
        )
    made = _dist.new_group(None if ranks is None else sorted(ranks))
    if made is not None:
        _groups.append(made)
    return made


_groups: list[Group] = []


def get_group(id: int = 0) -> Group:
    """0 is the group of all ranks; others have numbers in the order in which this rank made them."""
    if id == 0:
        return _dist.world()
    if not 0 < id <= len(_groups):
        raise ValueError(f"get_group: expected an id from 0 to {len(_groups)}, got {id}")
    return _groups[id - 1]


def barrier(group: Group | None = None) -> None:
    _dist.barrier(group)


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Calls with sync_op=True are done when they return; the others' tasks are waited for."""


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Work:
    return _task(_dist.all_reduce(tensor, op, group, not sync_op), sync_op)


def reduce(
    tensor: Tensor,
    dst: int,
    op: str = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    return _task(_dist.reduce(tensor, dst, op, group, not sync_op), sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Work:
    return _task(_dist.broadcast(tensor, src, group, not sync_op), sync_op)


def _room(tensors: list[Tensor], like: Tensor, count: int, call: str) -> None:
    """An empty list gets tensors to write into."""
    if not tensors:
        tensors += [tenon.empty_like(like.detach()) for _ in range(count)]
    if len(tensors) != count:
        raise ValueError(f"{call}: expected an empty list, or {count} tensors, got {len(tensors)}")


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Work:
    _room(tensor_list, tensor, get_world_size(group), "all_gather")
    return _task(_dist.all_gather(tensor_list, tensor, group, not sync_op), sync_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    members = (group or _dist.world()).ranks
    if gather_list is not None and members[get_rank(group)] == dst:
        _room(gather_list, tensor, len(members), "gather")
    _dist.gather(tensor, gather_list, dst, group)
    return Work(None)


def scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    _dist.scatter(tensor, None if tensor_list is None else list(tensor_list), src, group)
    return Work(None)


def reduce_scatter(
    tensor: Tensor,
    tensor_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    group = group or _dist.world()
    return _task(_collectives.reduce_scatter(tensor, tensor_list, op, group, not sync_op), sync_op)


def alltoall(
    out_tensor_list: list[Tensor],
    in_tensor_list: list[Tensor],
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    if not out_tensor_list:
        out_tensor_list += [tenon.empty_like(x.detach()) for x in in_tensor_list]
    return _task(_dist.all_to_all(out_tensor_list, in_tensor_list, group, not sync_op), sync_op)


def alltoall_single(
    out_tensor: Tensor,
    in_tensor: Tensor,
    in_split_sizes: list[int] | None = None,
    out_split_sizes: list[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    result = _dist.all_to_all_single(
        out_tensor, in_tensor, out_split_sizes, in_split_sizes, group, not sync_op
    )
    return _task(result, sync_op)


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Work:
    task = isend(tensor, dst, group)
    if sync_op:
        task.wait()
    return task


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Work:
    task = irecv(tensor, src, group)
    if sync_op:
        task.wait()
    return task


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Work:
    return _dist.isend(tensor, dst, group)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Work:
    return _dist.irecv(tensor, 0 if src is None else src, group)


class P2POp:
    """One message for batch_isend_irecv: `op` is isend or irecv."""

    def __init__(
        self, op: Callable[..., Work], tensor: Tensor, peer: int, group: Group | None = None
    ) -> None:
        _messages.expect(op)
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


_messages = _collectives.Messages(isend, irecv)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    return _messages.batch(p2p_op_list)


def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    _objects.all_gather_object(object_list, obj, group or _dist.world())


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    _objects.broadcast_object_list(object_list, src, group or _dist.world())


def scatter_object_list(
    out_object_list: list[Any],
    in_object_list: list[Any] | None = None,
    src: int = 0,
    group: Group | None = None,
) -> None:
    if not out_object_list:
        out_object_list.append(None)
    _objects.scatter_object_list(out_object_list, in_object_list, src, group or _dist.world())


def send_object_list(object_list: list[Any], dst: int, group: Group | None = None) -> None:
    _objects.send_object_list(object_list, dst, group or _dist.world())


def recv_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    _objects.recv_object_list(object_list, src, group or _dist.world())


# -- groups that meet at an address


_servers: list[Any] = []  # on rank 0


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """`server_endpoint` is "host:port" of rank 0, which serves a store there."""
    host, _, port = server_endpoint.partition(":")
    if not host or not port.isdecimal():
        raise ValueError(
            f"gloo_init_parallel_env: expected server_endpoint 'host:port', got {server_endpoint!r}"
        )
    if rank_id == 0:
        _servers.append(_dist.serve_store(host, int(port)))
    store = _dist.TcpStore(host, int(port))
    _dist.init_process_group(rank=rank_id, world_size=rank_num, store=store)


def gloo_barrier() -> None:
    _dist.barrier()


def gloo_release() -> None:
    _dist.destroy_process_group()
    for server in _servers:
        server.close()
    _servers.clear()


shutdown_process_group = destroy_process_group


# -- checkpoints


def save_state_dict(
    state_dict: dict[str, Tensor],
    path: str | os.PathLike,
    process_group: Group | None = None,
    coordinator_rank: int = 0,
    unique_id: int | None = None,
    async_save: bool = False,
) -> None:
    """A folder as tenon.distributed.checkpoint writes it: all ranks write, and none coordinates."""
    if unique_id is not None or coordinator_rank != 0:
        raise NotImplementedError(
            "save_state_dict: expected unique_id and coordinator_rank to be left out"
        )
    _dist.checkpoint.save(state_dict, path, group=process_group, asynchronous=async_save)


def load_state_dict(
    state_dict: dict[str, Tensor],
    path: str | os.PathLike,
    process_group: Group | None = None,
    coordinator_rank: int = 0,
    unique_id: int | None = None,
    offload: bool = False,
) -> None:
    """Into the tensors of `state_dict`."""
    if unique_id is not None or offload or coordinator_rank != 0:
        raise NotImplementedError(
            "load_state_dict: expected unique_id, offload and coordinator_rank to be left out"
        )
    _dist.checkpoint.load(state_dict, path, group=process_group)


# -- the same calls with a stream, which is that of the device in any case


def _on_stream(call: Callable[..., Any]) -> Any:
    @functools.wraps(call)
    def on_stream(*args: Any, use_calc_stream: bool = False, **options: Any) -> Any:
        if use_calc_stream and not options.get("sync_op", True):
            raise RuntimeError(
                "use_calc_stream: expected False with sync_op=False, because the stream waits"
            )
        return call(*args, **options)

    return staticmethod(on_stream)


def _gather_into(
    tensor_or_tensor_list: Any,
    tensor: Tensor,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    if not isinstance(tensor_or_tensor_list, Tensor):
        return all_gather(tensor_or_tensor_list, tensor, group, sync_op)
    return _task(
        _dist.all_gather_into_tensor(tensor_or_tensor_list, tensor, group, not sync_op), sync_op
    )


def _exchange_by_sizes(
    out_tensor: Tensor,
    in_tensor: Tensor,
    out_split_sizes: list[int] | None = None,
    in_split_sizes: list[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Work:
    return alltoall_single(out_tensor, in_tensor, in_split_sizes, out_split_sizes, group, sync_op)


class stream:
    """Calls that take `use_calc_stream`."""

    all_reduce, reduce, broadcast = (
        _on_stream(all_reduce),
        _on_stream(reduce),
        _on_stream(broadcast),
    )
    all_gather, gather, scatter = _on_stream(_gather_into), _on_stream(gather), _on_stream(scatter)
    reduce_scatter, alltoall = _on_stream(reduce_scatter), _on_stream(alltoall)
    alltoall_single = _on_stream(_exchange_by_sizes)
    send, recv = _on_stream(send), _on_stream(recv)


def spawn(
    func: Callable[..., None],
    args: Sequence[Any] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: Any,
) -> None:
    raise NotImplementedError(
        "spawn: start the ranks with `tenon run -n 4 train.py`, or run func in tenon.distributed.local(n)"
    )


# Names of Paddle whose work other names do here, or none.
_OTHERS = {
    "to_static": "tenon.distributed.auto chooses placements, Plan.apply makes them, and tenon.compile makes programs",
    "auto_tuner": "the command is `tenon tune`, and tenon.distributed.tune does so in a program",
    "Strategy": "tenon.distributed.Recipe and `tenon tune` choose what it would set",
}


def __getattr__(name: str) -> Any:
    if name in _OTHERS:
        raise AttributeError(
            f"tenon.compat.paddle does not have paddle.distributed.{name}: {_OTHERS[name]}"
        )
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
