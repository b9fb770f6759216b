# SPDX-License-Identifier: Apache-2.0
"""Attention to keys and values that go around a ring of ranks (Liu et al., 2023, "Ring Attention with Blockwise
Transformers").

Each round gives results for the keys that have arrived, and the logarithms of the sums of their exponentials; rounds are
merged by these. Backward, the weights of a round are computed again from the logarithms of all rounds, and gradients of
keys and values travel with them, once more than these, to come home.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tenon
from tenon import Function, Tensor, _core

from .group import ProcessGroup
from .work import Work

SCORES_AT_ONCE = 1 << 22  # of all batches and heads together


@dataclass(frozen=True)
class _Ring:
    group: ProcessGroup
    causal: bool
    zigzag: bool
    scale: float

    def sources(self) -> list[int]:
        """Whose keys and values are here, round by round."""
        return [(self.group.rank - turn) % self.group.size for turn in range(self.group.size)]

    def visible(self, source: int, length: int) -> tuple[slice, slice, bool] | None:
        """Which of this rank's queries see which keys of `source`, and whether only those up to themselves; None: none.

        In zigzag a rank's first half lies before, and its second half behind, both halves of all ranks above it. Its own
        positions ascend, so that the mask of a whole is that of both halves.
        """
        everything = slice(0, length)
        if not self.causal:
            return everything, everything, False
        if source == self.group.rank:
            return everything, everything, True
        if source < self.group.rank:
            return everything, slice(0, length // 2) if self.zigzag else everything, False
        return (slice(length // 2, length), everything, False) if self.zigzag else None

    def pass_on(self, tensors: list[Tensor]) -> tuple[list[Tensor], Work]:
        """What the rank before sends, while these go to the next one."""
        rank, size = self.group.rank, self.group.size
        room = [tenon.empty(tuple(x.shape), dtype=x.dtype, device=x.device) for x in tensors]
        work = self.group.exchange(
            [(x, (rank + 1) % size) for x in tensors],
            [(x, (rank - 1) % size) for x in room],
            async_op=True,
        )
        return room, work


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    scale: float,
    group: ProcessGroup,
    zigzag: bool,
) -> Tensor:
    """Of this rank's positions. Heads of the query [..., heads, length, features] may be a multiple of those of the key:
    those that share a head of the key lie side by side."""
    return _RingAttention.apply(query, key, value, _Ring(group, causal, zigzag, scale))


class _RingAttention(Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, ring: _Ring) -> Tensor:
        ctx.ring = ring
        query, key, value = (x.detach().contiguous() for x in (query, key, value))
        q = _grouped(query, key.shape[-3])
        length = query.shape[-2]
        out: Tensor | None = None
        logs: Tensor | None = None
        here = [key, value]
        for turn, source in enumerate(ring.sources()):
            is_last = turn == ring.group.size - 1
            coming, work = ([], None) if is_last else ring.pass_on(here)
            visible = ring.visible(source, length)
            if visible is not None:
                rows, columns, causal = visible
                k, v = (x[..., columns, :] for x in here)
                part, part_logs = _attend(q[..., rows, :], k, v, causal, ring.scale)
                if out is None or logs is None:  # one's own keys come first: all rows see some
                    out, logs = part, part_logs
                else:
                    _merge(out[..., rows, :], logs[..., rows], part, part_logs)
            if work is not None:
                work.wait()
                here = coming
        assert out is not None and logs is not None
        result = out.to(query.dtype).reshape([*query.shape[:-1], value.shape[-1]])
        ctx.save_for_backward(query, key, value, result, logs)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        if tenon.is_grad_enabled():
            raise NotImplementedError(
                "ContextParallel.attention: expected a backward pass without create_graph, because its gradients have "
                "none; use method='heads', whose gradients have"
            )
        query, key, value, result, logs = ctx.saved_tensors
        ring: _Ring = ctx.ring
        heads, length = key.shape[-3], query.shape[-2]
        wide = logs.dtype
        q, dout, out = (_grouped(x, heads).to(wide) for x in (query, grad.contiguous(), result))
        delta = (dout * out).sum(-1)
        dquery = tenon.zeros_like(q)
        here = [key.detach(), value.detach()]
        # Sums travel in the dtype in which they are made.
        dkey, dvalue = (tenon.zeros(tuple(x.shape), dtype=wide, device=x.device) for x in here)
        arriving: Work | None = None
        for turn, source in enumerate(ring.sources()):
            is_last = turn == ring.group.size - 1
            coming, work = ([], None) if is_last else ring.pass_on(here)
            visible = ring.visible(source, length)
            made = None
            if visible is not None:
                rows, columns, causal = visible
                k, v = (x[..., columns, :].to(wide) for x in here)
                of_rows = (q[..., rows, :], dout[..., rows, :], delta[..., rows], logs[..., rows])
                made = _gradients(*of_rows, k, v, causal, ring.scale)
                dquery[..., rows, :] += made[0]
            if arriving is not None:  # what other ranks made for these keys, before this one
                arriving.wait()
            if made is not None:
                dkey[..., columns, :] += made[1]
                dvalue[..., columns, :] += made[2]
            if ring.group.size > 1:
                (dkey, dvalue), arriving = ring.pass_on([dkey, dvalue])
            if work is not None:
                work.wait()
                here = coming
        if arriving is not None:
            arriving.wait()
        return (
            dquery.reshape(tuple(query.shape)).to(query.dtype),
            dkey.to(key.dtype),
            dvalue.to(value.dtype),
            None,
        )


def _grouped(x: Tensor, heads: int) -> Tensor:
    """[..., heads, queries that share a head, length, features]."""
    return x.reshape([*x.shape[:-3], heads, x.shape[-3] // heads, *x.shape[-2:]])


def _pieces(q: Tensor, keys: int, causal: bool) -> Iterator[tuple[slice, slice]]:
    """A part of the queries at a time, and the keys that they see."""
    queries = q.shape[-2]
    lanes = max(1, q.numel() // max(1, queries * q.shape[-1]))
    step = max(1, SCORES_AT_ONCE // max(1, lanes * keys))
    for start in range(0, queries, step):
        stop = min(start + step, queries)
        yield slice(start, stop), slice(0, stop if causal else keys)


def _scores(q: Tensor, k: Tensor, rows: slice, seen: slice, causal: bool, scale: float) -> Tensor:
    scores = (q[..., rows, :] * scale) @ tenon.transpose(_shared(k, seen), -1, -2)
    if not causal:
        return scores
    i = tenon.arange(rows.start, rows.stop, device=q.device).reshape([-1, 1])
    return tenon.where(tenon.arange(seen.stop, device=q.device) <= i, scores, float("-inf"))


def _shared(x: Tensor, seen: slice) -> Tensor:
    """Some rows of [..., heads, length, features], for all queries that share a head."""
    return tenon.unsqueeze(x[..., seen, :], [-3])


def _attend(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Results, and logarithms of the sums of the exponentials of each row, both in float32 or wider."""
    heads = list(q.shape[:-2])
    k, v = (tenon.expand(tenon.unsqueeze(x, [-3]), [*heads, *x.shape[-2:]]) for x in (k, v))
    out, logs = _core.internal_operator("tenon::attention")(q, k, v, None, causal, scale)
    return out.to(logs.dtype), logs


def _merge(out: Tensor, logs: Tensor, part: Tensor, part_logs: Tensor) -> None:
    """`out` and `logs` of some keys become those of some more: weights of a sum are shares of the sum of exponentials."""
    both = tenon.logaddexp(logs, part_logs)
    before, now = (tenon.unsqueeze(tenon.exp(x - both), [-1]) for x in (logs, part_logs))
    out.copy_(out * before + part * now)
    logs.copy_(both)


def _gradients(
    q: Tensor,
    dout: Tensor,
    delta: Tensor,
    logs: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the query, the key and the value: of all queries to some keys, a part of the queries at a time."""
    dquery, dkey, dvalue = tenon.empty_like(q), tenon.zeros_like(k), tenon.zeros_like(v)
    for rows, seen in _pieces(q, k.shape[-2], causal):
        own_q, own_dout = q[..., rows, :], dout[..., rows, :]
        scores = _scores(q, k, rows, seen, causal, scale)
        weights = tenon.exp(scores - tenon.unsqueeze(logs[..., rows], [-1]))
        dweights = own_dout @ tenon.transpose(_shared(v, seen), -1, -2)
        dscores = weights * (dweights - tenon.unsqueeze(delta[..., rows], [-1])) * scale
        dquery[..., rows, :] = dscores @ _shared(k, seen)
        # Queries that share a head are rows of one product.
        dkey[..., seen, :] += _across(dscores, own_q)
        dvalue[..., seen, :] += _across(weights, own_dout)
    return dquery, dkey, dvalue


def _across(scores: Tensor, x: Tensor) -> Tensor:
    flat = scores.reshape([*scores.shape[:-3], -1, scores.shape[-1]])
    rows = x.reshape([*x.shape[:-3], -1, x.shape[-1]])
    return tenon.transpose(flat, -1, -2) @ rows
