# SPDX-License-Identifier: Apache-2.0
"""Norms of gradients of which ranks have parts: each element counts once, on however many ranks it is."""

from __future__ import annotations

from collections.abc import Iterable

import tenon
from tenon import Tensor

from .experts import place_of
from .fully_shard import ShardedParameter
from .group import ProcessGroup
from .world import world


def clip_grad_norm_(
    parameters: Iterable[Tensor], max_norm: float, group: ProcessGroup | None = None
) -> Tensor:
    """Scale gradients so that their 2-norm is `max_norm` at most, and return the norm before: that of the whole model,
    the same on all ranks. Rows of sharded parameters and experts count once, on however many ranks of the group they are.
    Every rank of the group calls it."""
    group = group or world()
    with_grads = [(p, p.grad) for p in parameters if p.grad is not None and p.grad.numel()]
    with tenon.no_grad():
        everywhere, parts = tenon.zeros([1]), tenon.zeros([1])
        for param, grad in with_grads:
            wide = grad.to(tenon.float32)
            square = (wide * wide).sum().to("cpu")
            copies = _copies(param, group)
            if copies is None:
                everywhere = everywhere + square
            else:
                parts = parts + square / copies
        norm = tenon.sqrt(group.all_reduce(parts) + everywhere)
        scale = tenon.minimum(max_norm / (norm + 1e-6), tenon.ones([1]))
        for _, grad in with_grads:
            grad.copy_(grad * scale.to(grad.dtype).to(grad.device))
        return norm.reshape([])


def _copies(param: Tensor, group: ProcessGroup) -> int | None:
    """On how many ranks of the group the elements of a part are; None: on all."""
    place = place_of(param)
    if isinstance(param, ShardedParameter):
        parts, ranks = param.group.size, set(param.group.ranks)
    elif place is not None:
        parts, ranks = place.group.size, set(place.group.ranks)
    else:
        return None
    if not ranks <= set(group.ranks) or group.size % parts:
        raise ValueError(
            f"clip_grad_norm_: expected a group of all ranks that have parts of the parameters, {sorted(ranks)} among "
            f"them, got {list(group.ranks)}"
        )
    return group.size // parts
