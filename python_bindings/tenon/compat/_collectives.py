# SPDX-License-Identifier: Apache-2.0
"""Calls of several ranks that PyTorch and Paddle spell alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon import distributed as dist
from tenon.distributed import ProcessGroup, Work


def reduce_scatter(
    output: Tensor, parts: Sequence[Tensor], op: str, group: ProcessGroup, async_op: bool
) -> Any:
    """`output` becomes this rank's of all ranks' `parts`, one for each rank, reduced."""
    if len(parts) != group.size or any(x.shape != output.shape for x in parts):
        raise ValueError(
            f"reduce_scatter: expected {group.size} tensors of shape {tuple(output.shape)}, as the output has, got "
            f"shapes {[tuple(x.shape) for x in parts]}"
        )
    joined = tenon.stack([x.detach() for x in parts], 0)
    into = output.reshape([1, *output.shape])
    return dist.reduce_scatter_tensor(into, joined, op, group, async_op)


class Messages:
    """Those of one library, whose calls isend and irecv stand for ours."""

    def __init__(self, isend: Callable[..., Work], irecv: Callable[..., Work]) -> None:
        self._ours = {isend: dist.isend, irecv: dist.irecv}

    def expect(self, op: Any) -> None:
        if op not in self._ours:
            raise ValueError(f"P2POp: expected isend or irecv as op, got {op!r}")

    def batch(self, operations: Sequence[Any]) -> list[Work]:
        """Of objects with `op`, `tensor`, `peer` and `group`."""
        return dist.batch_isend_irecv(
            [
                dist.P2POp(self._ours[each.op], each.tensor, each.peer, each.group)
                for each in operations
            ]
        )
