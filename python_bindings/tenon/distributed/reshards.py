# SPDX-License-Identifier: Apache-2.0
"""Between placements: the collectives of one axis of a mesh, and a report of those that operators needed."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import tenon
from tenon import Tensor, _core

from .call_site import call_site
from .group import ProcessGroup
from .placements import Partial, Placement, Shard
from .recorded_calls import recordable

_POLICIES = ("deny", "warn_once", "allow")
_state: dict[str, Any] = {"policy": "warn_once"}
_rows: dict[tuple[str, str, str, str, bool], list[int]] = {}
_warned: set[str] = set()
_lock = threading.Lock()


def reshard_policy(policy: str | None = None) -> str:
    """What happens when an operator that has no rule for tensors that are cut needs them whole on every rank: 'deny' is an
    error, 'warn_once' (at the start) warns once for each operator, 'allow' only counts. Returns the one before."""
    before = _state["policy"]
    if policy is not None:
        if policy not in _POLICIES:
            raise ValueError(
                f"reshard_policy: expected 'deny', 'warn_once' or 'allow', got {policy!r}"
            )
        _state["policy"] = policy
    return before


def reshard_report(reset: bool = False) -> list[dict[str, Any]]:
    """What operators have moved between ranks of this process because their operands were not where their rules want them:
    operator, line of the program, placements, whether there was a rule, calls, and bytes that this rank has sent. What
    `redistribute` and `full_tensor` move is not in it."""
    with _lock:
        rows = [
            {
                "operator": operator,
                "line": line,
                "from": before,
                "to": after,
                "has_rule": has_rule,
                "calls": calls,
                "bytes": sent,
            }
            for (operator, line, before, after, has_rule), (calls, sent) in _rows.items()
        ]
        if reset:
            _rows.clear()
            _warned.clear()
    return rows


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """The report inside is one of its own, and what it had counted before is there again behind it."""
    with _lock:
        before, warned = dict(_rows), set(_warned)
        _rows.clear()
    try:
        yield
    finally:
        with _lock:
            _rows.clear()
            _rows.update(before)
            _warned.clear()
            _warned.update(warned)


def set_sharding_rules(operator: str, rules: str | None) -> None:
    """Rules for an operator whose definition has none, or others in their place: lines as those of `shard` in operator
    definitions, such as "... m k, ... k n -> ... m n; k: sum". None: those of the definition again. Call it before the
    operator is used, and test it as tests/distributed/test_sharding_rules.py does: results follow the rule."""
    _core.set_sharding_rules(operator, rules)


def move(
    group: ProcessGroup,
    source: Placement,
    target: Placement,
    extent: int,
    local: Tensor,
    operator: str | None,
    has_rule: bool,
) -> Tensor:
    """This rank's part in `target`, of its part in `source`, along the axis of the mesh that `group` is. Where `source` is
    Shard, its axis has `extent` elements on all ranks together."""
    if operator is not None:
        _note(group, source, target, extent, local, operator, has_rule)
    group = recordable(group)
    if isinstance(source, Shard):
        if isinstance(target, Shard):
            return _exchange(group, source.dim, target.dim, extent, local)
        return _gather(group, source.dim, extent, local)
    assert isinstance(source, Partial)
    reduction = "mean" if source.reduce_op == "avg" else source.reduce_op
    if isinstance(target, Shard) and local.shape[target.dim] % group.size == 0:
        if local.numel() == 0:
            return tenon.narrow(local, target.dim, 0, local.shape[target.dim] // group.size)
        rows = tenon.movedim(local, target.dim, 0).contiguous()
        own = group.reduce_scatter(rows, reduction)
        return tenon.movedim(own, 0, target.dim).contiguous()
    whole = group.all_reduce(local.contiguous(), reduction) if local.numel() else local
    if isinstance(target, Shard):
        begin, end = _cut(whole.shape[target.dim], group.size, group.rank)
        whole = tenon.narrow(whole, target.dim, begin, end - begin).contiguous()
    return whole


def _cut(size: int, ranks: int, rank: int) -> tuple[int, int]:
    return size * rank // ranks, size * (rank + 1) // ranks


def _shape_with(local: Tensor, dim: int, size: int) -> list[int]:
    shape = list(local.shape)
    shape[dim] = size
    return shape


def _gather(group: ProcessGroup, dim: int, extent: int, local: Tensor) -> Tensor:
    # Of what has no element on any rank nothing is sent.
    if extent == 0 or any(size == 0 for axis, size in enumerate(local.shape) if axis != dim):
        return tenon.zeros(
            _shape_with(local, dim, extent), dtype=local.dtype, device=str(local.device)
        )
    if extent % group.size == 0:
        rows = group.all_gather(tenon.movedim(local, dim, 0).contiguous())
        return tenon.movedim(rows, 0, dim).contiguous()
    parts = []
    for rank in range(group.size):
        begin, end = _cut(extent, group.size, rank)
        parts.append(_empty(local, _shape_with(local, dim, end - begin)))
    group.all_to_all([local.contiguous()] * group.size, out=parts)
    return tenon.concat(parts, dim)


def _exchange(group: ProcessGroup, source: int, target: int, extent: int, local: Tensor) -> Tensor:
    sends, parts = [], []
    size = local.shape[target]
    own_begin, own_end = _cut(size, group.size, group.rank)
    for rank in range(group.size):
        begin, end = _cut(size, group.size, rank)
        sends.append(tenon.narrow(local, target, begin, end - begin).contiguous())
        begin, end = _cut(extent, group.size, rank)
        shape = _shape_with(local, source, end - begin)
        shape[target] = own_end - own_begin
        parts.append(_empty(local, shape))
    group.all_to_all(sends, out=parts)
    return tenon.concat(parts, source)


def _empty(local: Tensor, shape: list[int]) -> Tensor:
    return tenon.empty(shape, dtype=local.dtype, device=str(local.device))


def _note(
    group: ProcessGroup,
    source: Placement,
    target: Placement,
    extent: int,
    local: Tensor,
    operator: str,
    has_rule: bool,
) -> None:
    policy = _state["policy"]
    if not has_rule and policy == "deny":
        raise NotImplementedError(
            f"[{operator}] of sharded tensors: there is no rule for it, and the policy is 'deny': it would need its "
            f"operands whole on every rank; redistribute them with Replicate(), or call dist.reshard_policy('allow')"
        )
    n = group.size
    sent = local.nbytes * (n - 1)  # all_gather
    if isinstance(source, Partial):
        sent = local.nbytes * (n - 1) // n * (1 if isinstance(target, Shard) else 2)
    elif isinstance(target, Shard):
        sent = local.nbytes * (n - 1) // n
    line = call_site()
    key = (operator, line, repr(source), repr(target), has_rule)
    with _lock:
        row = _rows.setdefault(key, [0, 0])
        row[0] += 1
        row[1] += sent
        warns = not has_rule and policy == "warn_once" and operator not in _warned
        if warns:
            _warned.add(operator)
    if warns:
        warnings.warn(
            f"[{operator}] of sharded tensors at {line}: there is no rule for it, so its operands are brought together "
            "on every rank; dist.reshard_report() counts, dist.reshard_policy('deny') refuses it",
            RuntimeWarning,
            stacklevel=2,
        )
