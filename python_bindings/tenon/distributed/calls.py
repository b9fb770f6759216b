# SPDX-License-Identifier: Apache-2.0
"""The calls of the group of all ranks, or of `group=`, in the spelling of other libraries: results are written into
tensors that are given. Ranks are those of the whole job.

They are returned, too: `y = all_reduce(x)` is `x`. With `async_op=True` a Work is returned instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Tensor
from tenon.io.safetensors import bytes_of

from .group import ProcessGroup
from .work import Work
from .world import world


class ReduceOp:
    """Names of reductions."""

    SUM = "sum"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"
    AVG = "mean"


def _place(group: ProcessGroup, rank: int, name: str) -> int:
    if rank not in group.ranks:
        raise ValueError(f"{name}: expected one of the ranks {list(group.ranks)}, got {rank}")
    return group.ranks.index(rank)


def all_reduce(
    tensor: Tensor, op: str = "sum", group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Overwrite `tensor` with the sum, prod, min, max or mean over all ranks."""
    return (group or world()).all_reduce(tensor, op, tensor, async_op)


def reduce(
    tensor: Tensor,
    dst: int,
    op: str = "sum",
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """As all_reduce, on rank `dst` alone."""
    group = group or world()
    root = _place(group, dst, "dst")
    out = tensor if group.rank == root else None
    result = group.reduce(tensor, root, op, out, async_op)
    return result if async_op else tensor


def broadcast(
    tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Overwrite `tensor` with the one of rank `src`."""
    group = group or world()
    return group.broadcast(tensor, _place(group, src, "src"), async_op)


def all_gather_into_tensor(
    output: Tensor, tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Overwrite `output` with all ranks' `tensor`, joined along the first axis."""
    return (group or world()).all_gather(tensor, output, async_op)


def all_gather(
    tensors: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Overwrite `tensors`, one for each rank, with all ranks' `tensor`."""
    group = group or world()
    return group.all_to_all([tensor] * group.size, tensors, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
) -> list[Tensor] | None:
    """Overwrite `gather_list` of rank `dst`, one tensor for each rank, with all ranks' `tensor`."""
    group = group or world()
    root = _place(group, dst, "dst")
    if group.rank != root:
        group.gather(tensor, root)
        return None
    if gather_list is None or len(gather_list) != group.size:
        raise ValueError(f"gather: expected a list of {group.size} tensors on rank {dst}")
    whole = group.gather(tensor.reshape([1, *tensor.shape]), root)
    for out, part in zip(gather_list, whole, strict=True):
        out.copy_(part)
    return gather_list


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Overwrite `tensor` with the one for this rank of `scatter_list` of rank `src`."""
    group = group or world()
    root = _place(group, src, "src")
    whole = None
    if group.rank == root:
        if scatter_list is None or len(scatter_list) != group.size:
            raise ValueError(f"scatter: expected a list of {group.size} tensors on rank {src}")
        whole = tenon.stack(scatter_list, 0)
    out = tensor.reshape([1, *tensor.shape])
    group.scatter(whole, root, out)
    return tensor


def reduce_scatter_tensor(
    output: Tensor,
    tensor: Tensor,
    op: str = "sum",
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Overwrite `output` with this rank's part of the reduced `tensor`, which is cut along its first axis."""
    return (group or world()).reduce_scatter(tensor, op, output, async_op)


def all_to_all_single(
    output: Tensor,
    tensor: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Cut `tensor` along its first axis, equally or by sizes, send a part to each rank, and write into `output` what
    they send."""
    group = group or world()
    if output_split_sizes is None and input_split_sizes is None:
        return group.all_to_all(tensor, output, async_op)
    into = _parts(output, output_split_sizes, group.size)
    work = group.all_to_all(_parts(tensor, input_split_sizes, group.size), into, async_op)
    return work if async_op else output


def _parts(x: Tensor, sizes: Sequence[int] | None, count: int) -> list[Tensor]:
    if sizes is None:
        if x.shape[0] % count:
            raise ValueError(
                f"all_to_all: expected a first axis that {count} ranks can share, got {x.shape}"
            )
        sizes = [x.shape[0] // count] * count
    if len(sizes) != count or sum(sizes) != x.shape[0] or min(sizes) < 0:
        raise ValueError(
            f"all_to_all: expected {count} sizes with sum {x.shape[0]}, got {list(sizes)}"
        )
    parts, start = [], 0
    for size in sizes:
        parts.append(x[start : start + size])
        start += size
    return parts


def all_to_all(
    outputs: list[Tensor],
    tensors: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send each of `tensors` to its rank, and write into `outputs` what they send; shapes may differ."""
    return (group or world()).all_to_all(tensors, outputs, async_op)


def barrier(group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Return when every rank has come here."""
    return (group or world()).barrier(async_op)


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None) -> None:
    """Send `tensor` to rank `dst`, which receives it."""
    group = group or world()
    group.send(tensor, _place(group, dst, "dst"))


def recv(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> int:
    """Overwrite `tensor` with what rank `src` sends; returns `src`."""
    group = group or world()
    group.recv(tensor, _place(group, src, "src"))
    return src


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None) -> Work:
    """As send, as a Work."""
    group = group or world()
    return group.send(tensor, _place(group, dst, "dst"), True)


def irecv(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Work:
    """As recv, as a Work."""
    group = group or world()
    return group.recv(tensor, _place(group, src, "src"), True)


@dataclass
class P2POp:
    """One message for batch_isend_irecv: `op` is isend or irecv, `peer` the other rank."""

    op: Any
    tensor: Tensor
    peer: int
    group: ProcessGroup | None = None


def batch_isend_irecv(operations: list[P2POp]) -> list[Work]:
    """Messages of one group that make progress together, so that ranks may send to each other."""
    if not operations:
        raise ValueError("batch_isend_irecv: expected one message at least")
    groups = {id(each.group or world()): each.group or world() for each in operations}
    if len(groups) > 1:
        raise ValueError("batch_isend_irecv: expected messages of one group")
    group = next(iter(groups.values()))
    wrong = [each.op for each in operations if each.op not in (isend, irecv)]
    if wrong:
        raise ValueError(f"batch_isend_irecv: expected isend or irecv as op, got {wrong[0]!r}")
    sends, receives = (
        [(each.tensor, _place(group, each.peer, "peer")) for each in operations if each.op is kind]
        for kind in (isend, irecv)
    )
    return [group.exchange(sends, receives, True)]


# -- objects, by pickle: what a rank sends is run by who receives it, so only among ranks that trust each other


def all_gather_object(value: Any, group: ProcessGroup | None = None) -> list[Any]:
    """All ranks' `value`, by rank. They are pickled."""
    group = group or world()
    data = tenon.frombuffer(bytearray(pickle.dumps(value)), dtype=tenon.uint8)
    sizes = group.all_gather(tenon.tensor([data.numel()], dtype=tenon.int64, device="cpu")).tolist()
    parts = [tenon.empty([size], dtype=tenon.uint8, device="cpu") for size in sizes]
    group.all_to_all([data] * group.size, parts)
    return [pickle.loads(bytes_of(part)) for part in parts]


def broadcast_object(value: Any, src: int = 0, group: ProcessGroup | None = None) -> Any:
    """The `value` of rank `src`, which is pickled."""
    group = group or world()
    root = _place(group, src, "src")
    data = pickle.dumps(value) if group.rank == root else b""
    size = group.broadcast(tenon.tensor([len(data)], dtype=tenon.int64, device="cpu"), root).item()
    room = tenon.zeros([size], dtype=tenon.uint8, device="cpu")
    if group.rank == root:
        room = tenon.frombuffer(bytearray(data), dtype=tenon.uint8)
    group.broadcast(room, root)
    return value if group.rank == root else pickle.loads(bytes_of(room))
