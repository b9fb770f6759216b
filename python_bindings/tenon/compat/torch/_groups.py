# SPDX-License-Identifier: Apache-2.0
"""Of torch.distributed: what is available, groups of parts of the ranks, calls of lists, and stores by PyTorch's names."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon import distributed as _dist
from tenon.compat import _objects
from tenon.distributed import CollectiveError, LocalStore, PeerFailed, ProcessGroup, TcpStore, Work

HashStore = LocalStore
DistError = DistBackendError = CollectiveError
DistNetworkError = PeerFailed


class Backend(str):
    """Names of backends: tensors of the host, and devices that communicate by themselves."""

    UNDEFINED, GLOO, NCCL = "undefined", "gloo", "nccl"
    MPI, UCC, XCCL = "mpi", "ucc", "xccl"


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _dist.world() if _dist.is_initialized() else None


class group(metaclass=_World):
    """`group.WORLD` is that of all ranks, once they have met."""


class GroupMember(metaclass=_World):
    """What new_group returns to who is not in the group; WORLD is that of all ranks."""

    NON_GROUP_MEMBER = -100


BACKENDS = ("gloo", "nccl", "host")


servers: list[Any] = []  # of init_method tcp://, on rank 0


def expect_group(group: Any) -> ProcessGroup:
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("expected a group that this rank is in, got NON_GROUP_MEMBER")
    return group or _dist.world()


def rank_of(group: ProcessGroup, rank: int | None, in_group: int | None, name: str) -> int:
    """A rank of the job, from it or from one of the group."""
    if (rank is None) == (in_group is None):
        raise ValueError(f"expected one of {name} and group_{name}, got {rank} and {in_group}")
    if rank is not None:
        return rank
    assert in_group is not None
    return get_global_rank(group, in_group)


def only(call: str, **options: Any) -> None:
    """Options that have no meaning here."""
    for name, (value, default) in options.items():
        if value != default:
            raise NotImplementedError(f"{call}: expected {name} to be left out, got {value!r}")


# -- what is there


def is_gloo_available() -> bool:
    """Tensors of the host are sent in any case."""
    return True


def is_nccl_available() -> bool:
    """Whether a GPU is here that communicates by itself."""
    try:
        return bool(_core.has_collective(tenon.device("cuda")))
    except Exception:  # no such device
        return False


def is_mpi_available() -> bool:
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_backend_available(backend: str) -> bool:
    name = backend.lower()
    return name == "gloo" or (name == "nccl" and is_nccl_available())


def is_torchelastic_launched() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: Any) -> str:
    kind = tenon.device(device).kind
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"get_default_backend_for_device: expected cpu or cuda, got {kind}")
    return {"cpu": "gloo", "cuda": "nccl"}[kind]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "get_node_local_rank: expected the variable LOCAL_RANK, which launchers set, or fallback_rank"
        )
    return int(fallback_rank)


def supports_complex(reduceOp: str) -> bool:
    return reduceOp in ("sum", "prod", "mean")


# -- groups


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    only(
        "new_group",
        timeout=(timeout, None),
        pg_options=(pg_options, None),
        use_local_synchronization=(use_local_synchronization, False),
        device_id=(device_id, None),
    )
    if backend is not None and backend not in BACKENDS:
        raise NotImplementedError(f"new_group: expected backend 'gloo' or 'nccl', got {backend!r}")
    chosen = None if ranks is None else list(ranks)
    if chosen is not None and sort_ranks:
        chosen.sort()
    made = _dist.new_group(chosen, group_desc)
    return GroupMember.NON_GROUP_MEMBER if made is None else made


def get_process_group_ranks(group: Any = None) -> list[int]:
    return list(expect_group(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    ranks = expect_group(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(
            f"expected a rank from 0 to {len(ranks) - 1} of the group, got {group_rank}"
        )
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    ranks = expect_group(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"expected one of the ranks {list(ranks)}, got {global_rank}")
    return ranks.index(global_rank)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """This rank's group, or None, and all of them; those that it is not in are GroupMember.NON_GROUP_MEMBER."""
    ranks = [rank for each in ranks_per_subgroup_list for rank in each]
    if not ranks or len(set(ranks)) != len(ranks):
        raise ValueError(
            f"new_subgroups_by_enumeration: expected different ranks, and one at least, got {ranks}"
        )
    made = [
        new_group(each, timeout, backend, pg_options, group_desc=group_desc)
        for each in ranks_per_subgroup_list
    ]
    own = [each for each in made if isinstance(each, ProcessGroup)]
    return own[0] if own else None, made


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` ranks side by side."""
    only("new_subgroups", group=(group, None))
    if group_size is None:
        raise NotImplementedError(
            "new_subgroups: expected group_size, because the number of devices of a machine is no property of ranks here"
        )
    size = _dist.get_world_size()
    if group_size < 1 or size % group_size:
        raise ValueError(
            f"new_subgroups: expected a group_size that divides the {size} ranks, got {group_size}"
        )
    parts = [list(range(i, i + group_size)) for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: datetime.timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: Any = None,
) -> Any:
    """Of lists of ranks of the parent group, the group of the one that this rank is in, in that order."""
    only(
        "split_group",
        timeout=(timeout, None),
        pg_options=(pg_options, None),
        backend=(backend, None),
    )
    parent = expect_group(parent_pg)
    ranks = [rank for each in split_ranks or () for rank in each]
    if not ranks or len(set(ranks)) != len(ranks):
        raise ValueError(f"split_group: expected different ranks, and one at least, got {ranks}")
    color, key = -1, 0
    for number, each in enumerate(split_ranks or ()):
        if parent.rank in each:
            color, key = number, list(each).index(parent.rank)
    made = parent.split(color, key, group_desc)
    return GroupMember.NON_GROUP_MEMBER if made is None else made


def monitored_barrier(
    group: Any = None,
    timeout: datetime.timedelta | float | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Ranks that do not come are named by the error of the group's own time limit; `timeout` may be shorter."""
    only("monitored_barrier", wait_all_ranks=(wait_all_ranks, False))
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    expect_group(group).barrier(True).wait(seconds)


# -- lists


def all_reduce_coalesced(
    tensors: list[Tensor], op: str = "sum", group: Any = None, async_op: bool = False
) -> None:
    only("all_reduce_coalesced", async_op=(async_op, False))
    of = expect_group(group)
    for tensor in tensors:
        _dist.all_reduce(tensor, op, of)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> None:
    """The first list has what rank 0 gave, and so on."""
    only("all_gather_coalesced", async_op=(async_op, False))
    of = expect_group(group)
    for index, tensor in enumerate(input_tensor_list):
        _dist.all_gather([of_rank[index] for of_rank in output_tensor_lists], tensor, of)


def gather_single(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """`gather_tensor` joins all ranks' tensors along the first axis, on the rank `dst` alone."""
    of = expect_group(group)
    if dst is None and group_dst is None:
        dst = 0
    root = get_group_rank(of, rank_of(of, dst, group_dst, "dst"))
    if of.rank == root and gather_tensor is None:
        raise ValueError(f"gather_single: expected a gather_tensor on rank {of.ranks[root]}")
    out = gather_tensor if of.rank == root else None
    result = of.gather(tensor, root, out, async_op)
    return result if async_op else None


gather_into_tensor = gather_single


# -- objects


def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    only(
        "send_object_list",
        device=(device, None),
        use_batch=(use_batch, False),
        weights_only=(weights_only, False),
    )
    of = expect_group(group)
    _objects.send_object_list(object_list, rank_of(of, dst, group_dst, "dst"), of)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """A rank to receive from is named: messages of any rank are not there."""
    only(
        "recv_object_list",
        device=(device, None),
        use_batch=(use_batch, False),
        weights_only=(weights_only, False),
    )
    of = expect_group(group)
    source = rank_of(of, src, group_src, "src")
    _objects.recv_object_list(object_list, source, of)
    return source


# -- stores


def TCPStore(
    host_name: str,
    port: int,
    world_size: int | None = None,
    is_master: bool = False,
    timeout: datetime.timedelta = datetime.timedelta(seconds=300),
    wait_for_workers: bool = True,
    **options: Any,
) -> TcpStore:
    """The store at a server, which the rank that is_master serves until the group is destroyed. With `world_size` it is
    there when that many have come, unless wait_for_workers is False."""
    only("TCPStore", **{name: (value, None) for name, value in options.items()})
    if is_master:
        servers.append(_dist.serve_store(host_name, port))
    limit = timeout.total_seconds()
    store = TcpStore(host_name, port, timeout=limit)
    if world_size is not None and wait_for_workers:
        come = store.add("TCPStore/workers", 1)
        if come % world_size == 0:
            store.set(f"TCPStore/all/{come // world_size}", b"")
        store.get(f"TCPStore/all/{-(-come // world_size)}", limit)
    return store
