# SPDX-License-Identifier: Apache-2.0
"""Gradients of parameters that the same ranks hold: summed over these while a backward pass goes on, and divided once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import tenon
from tenon import Tensor

from .buckets import buckets_of
from .dtensor import DTensor, local_of, redistribute
from .failed_pass import settle_failed_pass
from .gathered_rows import gathered_rows
from .group import ProcessGroup
from .work import Work

OWNER = "DistributedDataParallel"


class Reducer:
    """`holders` are the ranks with the same parameters; None: this one alone. `divisor` is the number of parts of the
    batch, on whatever ranks parameters are: a multiple of the number of holders. `of_rows` are the indices of parameters
    whose gradients are rows (docs/sparse.md), which travel as rows behind all others."""

    def __init__(
        self,
        names: Sequence[str],
        params: Sequence[Tensor],
        holders: ProcessGroup | None,
        divisor: int,
        limit_bytes: int,
        find_unused: bool,
        of_rows: Sequence[int] = (),
    ) -> None:
        self._names, self._params = list(names), list(params)
        self._holders, self._bytes, self._find_unused = holders, limit_bytes, find_unused
        # The mean over the holders divides by their number; the rest is divided as gradients come, before they are added to
        # what is there, which may have been averaged by an earlier pass.
        rest = divisor // (1 if holders is None else holders.size)
        if rest > 1:
            for param in self._params:
                param.register_hook(lambda grad: grad / rest)
        for param in self._params:
            if isinstance(param, DTensor):
                param.register_hook(_placed_as(param))
        self._of_rows = list(of_rows)
        self._has_order = False
        # Gradients come from the last layer first.
        self._set_buckets(list(range(len(self._params)))[::-1])
        self._ready: list[int] = []  # of this pass, in order
        self._kept: set[int] = set()  # with gradients of this rank alone, as those inside no_sync()
        self._works: list[tuple[list[int], Tensor, Work] | None] = []

    # -- during a backward pass

    def settle_failed(self) -> None:
        """The pass before raised."""
        self._kept.update(self._ready)
        if self._holders is not None:
            works = [entry[2] for entry in self._works if entry is not None]
            settle_failed_pass(OWNER, self._holders, works)

    def begin(self) -> None:
        self._ready = []
        self._works = [None] * len(self._buckets)
        self._missing = [len(group) for group in self._buckets]
        self._started = 0

    def keep(self, index: int) -> None:
        """A gradient that is not averaged in this pass."""
        self._kept.add(index)

    def take(self, index: int) -> None:
        self._ready.append(index)
        if index in self._of_rows:
            return
        self._missing[self._bucket_of[index]] -= 1
        # In the order of buckets, which is the same on all ranks.
        while self._started < len(self._buckets) and self._missing[self._started] == 0:
            self._start(self._started)

    def unused(self) -> list[str]:
        """Parameters without a gradient, which are an error unless they are looked for."""
        if self._find_unused:
            return []
        ready = set(self._ready)
        return [name for index, name in enumerate(self._names) if index not in ready]

    def finish(self) -> None:
        order, self._ready = self._ready, []
        used = self._used(order)
        self._start_rest()
        with tenon.no_grad():
            for entry in self._works:
                if entry is None:  # no other rank has these parameters
                    continue
                members, flat, work = entry
                work.wait()
                start = 0
                for index in members:
                    param = self._params[index]
                    own = local_of(param)
                    part = flat[start : start + own.numel()].reshape(own.shape)
                    start += own.numel()
                    if not used[index]:
                        continue
                    if param.grad is None:
                        param.grad = tenon.zeros_like(param)
                    local_of(param.grad).copy_(part)
            if self._holders is not None:
                rows = [(index, self._params[index]) for index in self._of_rows if used[index]]
                for index, grad in gathered_rows(rows, self._holders):
                    self._params[index].grad = grad
        self._works = []
        self._kept.clear()
        if not self._has_order:
            self._adopt_order(order)

    # -- how

    def _set_buckets(self, order: list[int]) -> None:
        order = [index for index in order if index not in self._of_rows]
        groups = buckets_of([local_of(self._params[index]) for index in order], self._bytes)
        self._buckets = [[order[place] for place in group] for group in groups]
        self._bucket_of = {index: b for b, group in enumerate(self._buckets) for index in group}

    def _start_rest(self) -> None:
        while self._started < len(self._buckets):
            self._start(self._started)

    def _start(self, bucket: int) -> None:
        self._started += 1
        if self._holders is None:
            return
        members = self._buckets[bucket]
        with tenon.no_grad():
            parts = []
            for index in members:
                param = self._params[index]
                grad = param.grad
                if grad is not None and grad.layout != param.layout:
                    self._refuse_layout(index, grad.layout, self._holders)
                if isinstance(grad, DTensor) and grad.placements != param.placements:
                    # Operators leave an axis of one element whole, and so it came to all ranks.
                    param.grad = grad = redistribute(grad, placements=param.placements)
                part = tenon.zeros_like(local_of(param)) if grad is None else local_of(grad)
                parts.append(part.detach().reshape([-1]))
            # A copy, also of one gradient: the program may read .grad meanwhile.
            flat = tenon.concat(parts) if len(parts) > 1 else parts[0].clone()
            if flat.numel() == 0:  # parts of sharded tensors without an element
                return
            work = self._holders.all_reduce(flat, "mean", flat, async_op=True)
        self._works[bucket] = (members, flat, work)

    def _refuse_layout(self, index: int, layout: str, holders: ProcessGroup) -> NoReturn:
        text = f"{OWNER}: expected a dense gradient of {self._names[index]!r}, got one of "
        if layout == "sharded":
            text += "layout sharded, of a parameter that is not; distribute the parameter over the same mesh"
        else:
            text += "rows, which travels for tables of Embedding(sparse=True) alone"
        holders.abort(text)
        raise NotImplementedError(text)

    def _used(self, order: list[int]) -> list[bool]:
        """Which parameters got a gradient on some rank."""
        here = [False] * len(self._params)
        for index in order:
            here[index] = True
        if not self._find_unused:
            return here
        for index in self._kept:
            here[index] = here[index] or self._params[index].grad is not None
        if self._holders is None:
            return here
        # Behind all buckets, which is the same place among the calls of all ranks.
        self._start_rest()
        with tenon.no_grad():
            flags = tenon.tensor(here).to(tenon.uint8)
            return [bool(flag) for flag in self._holders.all_reduce(flags, "max").tolist()]

    def _adopt_order(self, order: list[int]) -> None:
        """Buckets from now on: those that were whole first on the first rank travel first; unused ones at the end."""
        self._has_order = True
        if self._holders is None:
            return
        rest = [index for index in range(len(self._params)) if index not in set(order)]
        told = tenon.tensor([*order, *rest], dtype=tenon.int64)
        with tenon.no_grad():
            self._holders.broadcast(told)
        self._set_buckets(told.tolist())


def _placed_as(param: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook: parts of gradients are those of the parameter's elements."""

    def place(grad: Tensor) -> Tensor:
        return redistribute(grad, placements=param.placements)

    return place
