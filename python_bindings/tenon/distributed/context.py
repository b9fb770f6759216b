# SPDX-License-Identifier: Apache-2.0
"""Sequences that are cut over ranks: attention of each rank's queries to the keys of all (context parallelism)."""

from __future__ import annotations

import tenon
from tenon import Tensor

from . import functional
from .group import ProcessGroup
from .ring_attention import ring_attention
from .world import world

LAYOUTS, METHODS = ("zigzag", "contiguous"), ("ring", "heads")


class ContextParallel:
    """Each rank of a group has a part of every sequence.

        context = dist.ContextParallel()
        x = context.split(tokens, 1)                     # this rank's positions of [batch, length]
        numbers = context.positions(tokens.shape[1])     # which they are, for embeddings of positions
        y = context.attention(q, k, v, causal=True)      # [batch, heads, length / n, features]
        loss = dist.functional.mean(losses)              # over the tokens of all ranks

    `layout="zigzag"` gives rank r of n the parts r and 2n - 1 - r of 2n, so that with `causal` all ranks have equally
    much to do; "contiguous" gives it the part r of n. `method="ring"` sends keys and values around, n - 1 times, while a
    rank computes with those it has (Liu et al., 2023, "Ring Attention"); "heads" gives each rank all positions of some
    heads (Jacobs et al., 2023, "DeepSpeed Ulysses"), whose number n must divide.

    Gradients are those of the sum of all ranks' losses: averaged over all ranks with a part of the batch, as
    DistributedDataParallel does, they are those of the mean of the ranks' losses, however long the sequences are cut.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None = None,
        layout: str = "zigzag",
        method: str = "ring",
    ) -> None:
        if layout not in LAYOUTS or method not in METHODS:
            raise ValueError(
                f"ContextParallel: expected a layout out of {', '.join(LAYOUTS)} and a method out of "
                f"{', '.join(METHODS)}, got {layout!r} and {method!r}"
            )
        self.group, self.layout, self.method = process_group or world(), layout, method

    # -- who has which positions

    def parts_of(self, rank: int) -> tuple[int, ...]:
        """Which of the parts of a sequence a rank has, in this order."""
        if self.layout == "contiguous":
            return (rank,)
        return rank, 2 * self.group.size - 1 - rank

    def _count(self) -> int:
        return self.group.size * (2 if self.layout == "zigzag" else 1)

    def _part_length(self, length: int) -> int:
        if length < 1 or length % self._count():
            raise ValueError(
                f"ContextParallel: expected a length that {self._count()} equal parts have together, as layout "
                f"{self.layout!r} needs on {self.group.size} ranks, got {length}; fill the sequence up and give its "
                "tokens at the end no weight in the loss"
            )
        return length // self._count()

    def positions(self, length: int, device: tenon.device | str | None = None) -> Tensor:
        """This rank's positions [length / n], int64, in their order here, of a sequence of `length`."""
        part = self._part_length(length)
        numbers = tenon.arange(length, device=device).reshape([self._count(), part])
        return tenon.concat([numbers[i] for i in self.parts_of(self.group.rank)], 0)

    def split(self, x: Tensor, dim: int) -> Tensor:
        """This rank's positions along the axis `dim` of an `x` that all ranks have."""
        part = self._part_length(x.shape[dim])
        parts = [tenon.narrow(x, dim, i * part, part) for i in self.parts_of(self.group.rank)]
        return parts[0].contiguous() if len(parts) == 1 else tenon.concat(parts, dim)

    def join(self, x: Tensor, dim: int) -> Tensor:
        """The whole of which every rank has a part, on all of them: what split undoes. It has a gradient."""
        dim = dim % x.ndim
        first = tenon.movedim(x, dim, 0).contiguous()
        if first.shape[0] % len(self.parts_of(0)):
            raise ValueError(
                f"ContextParallel.join: expected a part that split made, got a length of {first.shape[0]}"
            )
        return tenon.movedim(self._in_order(functional.all_gather(first, self.group)), 0, dim)

    def _in_order(self, x: Tensor) -> Tensor:
        """Along the first axis, from the order of ranks to that of positions."""
        if self.layout == "contiguous":
            return x
        given = [part for rank in range(self.group.size) for part in self.parts_of(rank)]
        parts = x.reshape([len(given), -1, *x.shape[1:]])
        order = [given.index(part) for part in range(len(given))]
        return tenon.concat([parts[i] for i in order], 0)

    def _by_ranks(self, x: Tensor) -> Tensor:
        """And back."""
        if self.layout == "contiguous":
            return x
        parts = x.reshape([self._count(), -1, *x.shape[1:]])
        return tenon.concat(
            [parts[i] for rank in range(self.group.size) for i in self.parts_of(rank)], 0
        )

    # -- attention

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """scaled_dot_product_attention of this rank's part of the query [..., heads, length / n, features] to the keys and
        values of all ranks, of which this one has a part of the same positions. Every rank calls it. Masks and dropout
        are not there."""
        _expect_parts(query, key, value, enable_gqa, len(self.parts_of(0)))
        scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
        if self.method == "heads":
            return self._by_heads(query, key, value, causal, scale, enable_gqa)
        return ring_attention(query, key, value, causal, scale, self.group, self.layout == "zigzag")

    def _by_heads(
        self, query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float, gqa: bool
    ) -> Tensor:
        q, k, v = (self._take_heads(x) for x in (query, key, value))
        out = tenon.scaled_dot_product_attention(
            q, k, v, causal=causal, scale=scale, enable_gqa=gqa
        )
        return self._take_positions(out, tuple(query.shape[:-3]))

    def _take_heads(self, x: Tensor) -> Tensor:
        """[..., heads, length / n, features] to [batch, heads / n, length, features]."""
        size, heads = self.group.size, x.shape[-3]
        if heads % size:
            raise ValueError(
                f"ContextParallel: expected a number of heads that {size} ranks can share, got {heads}; use "
                "method='ring'"
            )
        x = x.reshape([-1, size, heads // size, *x.shape[-2:]])
        # The first axis says to which rank, and then from which; positions come behind it.
        arrived = functional.all_to_all(tenon.permute(x, [1, 3, 0, 2, 4]).contiguous(), self.group)
        joined = self._in_order(arrived.reshape([-1, *arrived.shape[2:]]))
        return tenon.permute(joined, [1, 2, 0, 3]).contiguous()

    def _take_positions(self, x: Tensor, batch: tuple[int, ...]) -> Tensor:
        """And back: [batch, heads / n, length, features] to [..., heads, length / n, features]."""
        size = self.group.size
        by_ranks = self._by_ranks(tenon.permute(x, [2, 0, 1, 3]).contiguous())
        by_ranks = by_ranks.reshape([size, -1, *by_ranks.shape[1:]])
        arrived = functional.all_to_all(by_ranks, self.group)
        back = tenon.permute(
            arrived, [2, 0, 3, 1, 4]
        )  # [batch, ranks, heads / n, positions, features]
        return back.reshape([*batch, size * x.shape[1], back.shape[3], back.shape[4]])


def _expect_parts(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, parts: int) -> None:
    shapes = f"got shapes {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
    if query.ndim < 3 or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(
            f"ContextParallel: expected query, key and value [..., heads, length, features], {shapes}"
        )
    if not (query.shape[-2] == key.shape[-2] == value.shape[-2]) or query.shape[-2] % parts:
        raise ValueError(
            f"ContextParallel: expected a query, key and value of the same positions, {shapes}"
        )
    if key.shape[-1] != query.shape[-1] or key.shape[:-3] != query.shape[:-3]:
        raise ValueError(
            f"ContextParallel: expected a query and key of equal batches and features, {shapes}"
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(f"ContextParallel: expected a value for each key, {shapes}")
    fits = query.shape[-3] == key.shape[-3]
    if enable_gqa:
        fits = key.shape[-3] > 0 and query.shape[-3] % key.shape[-3] == 0
    if not fits:
        raise ValueError(
            f"ContextParallel: expected as many heads of key and value as of the query, or with enable_gqa=True a part of "
            f"them, {shapes}"
        )
    if len({query.dtype, key.dtype, value.dtype}) > 1 or not query.dtype.is_floating_point:
        raise TypeError(
            "ContextParallel: expected floating-point tensors of one dtype, got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
