# SPDX-License-Identifier: Apache-2.0
"""Calls of several ranks by PyTorch's names, with its parameters and results: calls write into tensors that are given, and
return None, or a Work with `async_op=True`. What they do is docs/distributed.md's.

    from tenon.compat import torch
    torch.distributed.init_process_group("gloo")
    torch.distributed.all_reduce(x, op=torch.distributed.ReduceOp.MAX)
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import Any

from tenon import Tensor
from tenon import distributed as _dist
from tenon.compat import _collectives, _objects
from tenon.compat.torch._groups import (
    BACKENDS,
    Backend,
    DistBackendError,
    DistError,
    DistNetworkError,
    GroupMember,
    HashStore,
    TCPStore,
    all_gather_coalesced,
    all_reduce_coalesced,
    expect_group,
    gather_into_tensor,
    gather_single,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    group,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    monitored_barrier,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    only,
    rank_of,
    recv_object_list,
    send_object_list,
    servers,
    split_group,
    supports_complex,
)
from tenon.distributed import (
    DistributedDataParallel,
    FileStore,
    ProcessGroup,
    Store,
    Work,
    ZeroRedundancyOptimizer,
    fully_shard,
    is_initialized,
)
from tenon.distributed import TcpStore as _TcpStore

from . import algorithms as algorithms
from . import checkpoint as checkpoint
from . import device_mesh as device_mesh
from . import fsdp as fsdp
from . import optim as optim
from . import rpc as rpc
from . import tensor as tensor
from .device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistributedDataParallel",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "ZeroRedundancyOptimizer",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "fully_shard",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "gather_single",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "split_group",
    "supports_complex",
]


class ReduceOp:
    """Names of reductions; those by bits are not there."""

    SUM, PRODUCT, MIN, MAX, AVG = "sum", "prod", "min", "max", "mean"
    BAND, BOR, BXOR, PREMUL_SUM = "BAND", "BOR", "BXOR", "PREMUL_SUM"


def _work(result: Any, async_op: bool) -> Work | None:
    return result if async_op else None


def is_available() -> bool:
    return True


_TIMEOUT = 1800.0  # seconds, as programs for PyTorch expect: rank 0 may fetch a data set while others wait at a barrier


def _is_launched(rank: int, world_size: int) -> bool:
    """Whether a launcher has said who this rank is, and not the program something else."""
    given = ((rank, "RANK"), (world_size, "WORLD_SIZE"))
    return all(value < 0 or os.environ.get(name) == str(value) for value, name in given)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """`backend` is "gloo", "nccl" or both as "cpu:gloo,cuda:nccl": tensors of the host go through it in any case, and
    devices that communicate by themselves do that. `init_method` is "env://", or "tcp://host:port" of rank 0. `rank` and
    `world_size`, where they are not what the variables of a launcher say, make the ranks meet at MASTER_ADDR and MASTER_PORT.
    """
    only("init_process_group", pg_options=(pg_options, None), device_id=(device_id, None))
    kinds = [each.rpartition(":")[2] for each in (backend or "host").split(",")]
    if any(kind not in BACKENDS for kind in kinds):
        raise NotImplementedError(
            f"init_process_group: expected backend 'gloo' or 'nccl', got {backend!r}"
        )
    seconds = _TIMEOUT if timeout is None else timeout.total_seconds()
    name = group_name or "world"
    if store is not None and init_method is not None:
        raise ValueError("init_process_group: expected one of init_method and store, got both")
    if store is None and init_method in (None, "env://") and not _is_launched(rank, world_size):
        address, port = (os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))
        if not address or not port:
            raise ValueError(
                "init_process_group: expected the variables MASTER_ADDR and MASTER_PORT beside rank and world_size, got "
                f"{address!r} and {port!r}"
            )
        init_method = f"tcp://{address}:{port}"
    if init_method is not None and init_method.startswith("tcp://"):
        host, _, port = init_method.removeprefix("tcp://").partition(":")
        if not host or not port.isdecimal() or rank < 0 or world_size < 1:
            raise ValueError(
                "init_process_group: expected tcp://host:port, rank and world_size, got "
                f"{init_method!r}, {rank} and {world_size}"
            )
        if rank == 0:
            servers.append(_dist.serve_store(host, int(port)))
        store = _TcpStore(host, int(port), timeout=seconds)
    elif init_method not in (None, "env://"):
        raise NotImplementedError(
            f"init_process_group: expected init_method 'env://' or 'tcp://host:port', got {init_method!r}"
        )
    if store is None:
        _dist.init_process_group(timeout=seconds, name=name)
    else:
        _dist.init_process_group(
            timeout=seconds, name=name, rank=rank, world_size=world_size, store=store
        )


def destroy_process_group(group: Any = None) -> None:
    _dist.destroy_process_group(group)
    if group is None:
        for server in servers:
            server.close()
        servers.clear()


def get_rank(group: Any = None) -> int:
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _dist.get_rank(group)


def get_world_size(group: Any = None) -> int:
    return -1 if group == GroupMember.NON_GROUP_MEMBER else _dist.get_world_size(group)


def get_backend(group: Any = None) -> str:
    expect_group(group)
    return "gloo"


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: datetime.timedelta | None = None,
) -> Work | None:
    only("barrier", timeout=(timeout, None), device_ids=(device_ids, None))
    return _work(expect_group(group).barrier(async_op), async_op)


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    return _work(_dist.all_reduce(tensor, op, expect_group(group), async_op), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    group = expect_group(group)
    root = rank_of(group, dst, group_dst, "dst")
    return _work(_dist.reduce(tensor, root, op, group, async_op), async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    group = expect_group(group)
    root = rank_of(group, src, group_src, "src")
    return _work(_dist.broadcast(tensor, root, group, async_op), async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    return _work(_dist.all_gather(tensor_list, tensor, expect_group(group), async_op), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output_tensor` joins the inputs along the first axis, or has an axis of ranks more in front."""
    group = expect_group(group)
    stacked = (group.size, *input_tensor.shape)
    if tuple(output_tensor.shape) == stacked and input_tensor.ndim:
        output_tensor = output_tensor.reshape([-1, *input_tensor.shape[1:]])
    return _work(
        _dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op), async_op
    )


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    group = expect_group(group)
    if dst is None and group_dst is None:
        dst = 0
    _dist.gather(tensor, gather_list, rank_of(group, dst, group_dst, "dst"), group)
    return Work(None) if async_op else None


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    group = expect_group(group)
    if src is None and group_src is None:
        src = 0
    _dist.scatter(tensor, scatter_list, rank_of(group, src, group_src, "src"), group)
    return Work(None) if async_op else None


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    return _work(
        _collectives.reduce_scatter(output, input_list, op, expect_group(group), async_op), async_op
    )


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`input` is cut along its first axis, or has an axis of ranks more in front."""
    group = expect_group(group)
    if tuple(input.shape) == (group.size, *output.shape) and output.ndim:
        output = output.reshape([1, *output.shape])
    return _work(_dist.reduce_scatter_tensor(output, input, op, group, async_op), async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    return _work(
        _dist.all_to_all(output_tensor_list, input_tensor_list, expect_group(group), async_op),
        async_op,
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    return _work(
        _dist.all_to_all_single(
            output, input, output_split_sizes, input_split_sizes, expect_group(group), async_op
        ),
        async_op,
    )


all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Messages between two ranks keep their order; tags, which would change it, are not there."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    irecv(tensor, src, group, tag, group_src).wait()
    return rank_of(expect_group(group), src, group_src, "src")


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    only("isend", tag=(tag, 0))
    group = expect_group(group)
    return _dist.isend(tensor, rank_of(group, dst, group_dst, "dst"), group)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """A rank to receive from is named: messages of any rank are not there."""
    only("irecv", tag=(tag, 0))
    group = expect_group(group)
    return _dist.irecv(tensor, rank_of(group, src, group_src, "src"), group)


class P2POp:
    """One message for batch_isend_irecv: `op` is isend or irecv."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        only("P2POp", tag=(tag, 0))
        _messages.expect(op)
        self.op, self.tensor, self.tag, self.group = op, tensor, tag, expect_group(group)
        self.peer = rank_of(self.group, peer, group_peer, "peer")


_messages = _collectives.Messages(isend, irecv)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    return _messages.batch(p2p_op_list)


# -- objects


def all_gather_object(
    object_list: list[Any], obj: Any, group: Any = None, weights_only: bool = False
) -> None:
    only("all_gather_object", weights_only=(weights_only, False))
    _objects.all_gather_object(object_list, obj, expect_group(group))


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    only("broadcast_object_list", weights_only=(weights_only, False), device=(device, None))
    group = expect_group(group)
    if src is None and group_src is None:
        src = 0
    _objects.broadcast_object_list(object_list, rank_of(group, src, group_src, "src"), group)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    only("gather_object", weights_only=(weights_only, False))
    group = expect_group(group)
    if dst is None and group_dst is None:
        dst = 0
    root = get_group_rank(group, rank_of(group, dst, group_dst, "dst"))
    _objects.gather_object(obj, object_gather_list, root, group)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    only("scatter_object_list", weights_only=(weights_only, False))
    group = expect_group(group)
    if src is None and group_src is None:
        src = 0
    source = rank_of(group, src, group_src, "src")
    _objects.scatter_object_list(
        scatter_object_output_list, scatter_object_input_list, source, group
    )
