# SPDX-License-Identifier: Apache-2.0
"""From one mesh to another: boxes of the parts that ranks have are cut with those of the parts that they want, and every
rank sends what another lacks."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from .mesh import DeviceMesh
from .placements import Placement, part_of_whole
from .world import world

Box = tuple[tuple[int, ...], tuple[int, ...]]  # where it begins, and its shape


def expect_ranks(source: DeviceMesh, target: DeviceMesh) -> None:
    """Every rank of the target has a part of the source, or it would not know the tensor."""
    missing = sorted(set(target.ranks) - set(source.ranks))
    if missing:
        raise NotImplementedError(
            f"redistribute: expected a mesh of ranks that have parts of the tensor, {sorted(source.ranks)} or some of them, "
            f"got one with ranks {missing}, too; use from_local(x.to_local(), mesh, placements)"
        )


def moved(
    local: Tensor,
    shape: Sequence[int],
    source: DeviceMesh,
    have: Sequence[Placement],
    target: DeviceMesh,
    want: Sequence[Placement],
) -> Tensor:
    """This rank's part of a whole of `shape` on `target`, of its part on `source`, where nothing is Partial(). All ranks of
    `source` call it. Each element is sent once to each rank that lacks it."""
    own = part_of_whole(shape, have, source.shape, source.get_coordinate())
    wanted = part_of_whole(shape, want, target.shape, target.get_coordinate())
    told = _tell_all(source, own, wanted)
    me = world().rank
    order = sorted(told)
    holders: dict[Box, list[int]] = {}
    for rank in order:
        holders.setdefault(told[rank][0], []).append(rank)
    local = local.detach().contiguous()
    made = tenon.empty(list(wanted[1]), dtype=local.dtype, device=local.device)
    sends: list[tuple[Tensor, int]] = []
    receives: list[tuple[Tensor, int]] = []
    shared: list[Box] = []
    for box, ranks in sorted(holders.items()):
        for index, rank in enumerate(order):
            common = _common(box, told[rank][1])
            if common is None:
                continue
            # Ranks that have the same part share the work.
            sender = rank if rank in ranks else ranks[index % len(ranks)]
            if sender == me:
                part = _piece(local, common, own[0])
                if rank == me:
                    _piece(made, common, wanted[0]).copy_(part)
                else:
                    sends.append((part.contiguous(), rank))
            elif rank == me:
                receives.append((tenon.empty(list(common[1]), dtype=local.dtype), sender))
                shared.append(common)
    world().exchange(sends, receives)
    for (part, _), common in zip(receives, shared, strict=True):
        _piece(made, common, wanted[0]).copy_(part.to(made.device))
    return made


def _tell_all(source: DeviceMesh, own: Box, wanted: Box) -> dict[int, tuple[Box, Box]]:
    """By rank, what it has and wants."""
    ndim = len(own[0])
    numbers = [0, *own[0], *own[1], *wanted[0], *wanted[1]]  # a message has an element at least
    mine = tenon.tensor(numbers, dtype=tenon.int64)
    others = [rank for rank in source.ranks if rank != world().rank]
    rooms = [tenon.empty([len(numbers)], dtype=tenon.int64) for _ in others]
    world().exchange([(mine, rank) for rank in others], list(zip(rooms, others, strict=True)))
    told = {world().rank: (own, wanted)}
    for rank, room in zip(others, rooms, strict=True):
        parts = [tuple(room.tolist()[1 + ndim * k : 1 + ndim * (k + 1)]) for k in range(4)]
        told[rank] = ((parts[0], parts[1]), (parts[2], parts[3]))
    return told


def _common(one: Box, other: Box) -> Box | None:
    begin = tuple(max(a, b) for a, b in zip(one[0], other[0], strict=True))
    ends = [min(a + n, b + m) for a, n, b, m in zip(*one, *other, strict=True)]
    size = tuple(end - start for end, start in zip(ends, begin, strict=True))
    return (begin, size) if all(n > 0 for n in size) else None


def _piece(part: Tensor, box: Box, offset: tuple[int, ...]) -> Tensor:
    """The view of a box of the whole, in a part that begins at `offset`."""
    for dim, (begin, size) in enumerate(zip(*box, strict=True)):
        part = tenon.narrow(part, dim, begin - offset[dim], size)
    return part
