# SPDX-License-Identifier: Apache-2.0
"""Gradients of parameters that the same ranks hold: summed over these while a backward pass goes on, and divided once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tenon
from tenon import Tensor

from .buckets import buckets_of
from .comm_hooks import GradBucket, as_future, mean_later
from .dtensor import DTensor, local_of, redistribute
from .failed_pass import settle_failed_pass
from .futures import Future
from .gathered_rows import gathered_rows
from .group import ProcessGroup
from .recorded_calls import recordable
from .work import Work

OWNER = "DistributedDataParallel"


class PassState:
    """Of the backward pass that goes on: in no program, and so not what compiled functions look at (jit/capture_rules.py)."""

    def __init__(self) -> None:
        self.ready: list[int] = []  # parameters with a gradient, in order
        self.kept: set[int] = set()  # with gradients of this rank alone, as those inside no_sync()
        self.works: list[tuple[list[int], Work | Future] | None] = []  # of the mean, by bucket
        self.missing: list[int] = []  # gradients, by bucket
        self.started = 0  # buckets


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
        self._pass = PassState()
        self._comm_hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        # While ranks join (join.py): whether this one is done, and takes part with zeros; by what its means are multiplied;
        # who is first among those that go on.
        self._is_shadow, self._scale, self._first = False, 1.0, 0

    def set_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        self._comm_hook = (state, hook)

    @property
    def has_rows(self) -> bool:
        return bool(self._of_rows)

    def join_with(self, scale: float, first: int) -> None:
        """Until the next call of it: multiply means; the order of buckets is that of rank `first`."""
        self._scale, self._first = scale, first

    def shadow(self) -> None:
        """The calls of a backward pass, with zeros, of a rank that has no more batches."""
        self._is_shadow = True
        try:
            self.begin()
            self.finish()
        finally:
            self._is_shadow = False

    # -- during a backward pass

    def settle_failed(self) -> None:
        """The pass before raised."""
        self._pass.kept.update(self._pass.ready)
        if self._holders is not None:
            works = [entry[1] for entry in self._pass.works if entry is not None]
            settle_failed_pass(OWNER, self._holders, works)

    def begin(self) -> None:
        self._pass.ready = []
        self._pass.works = [None] * len(self._buckets)
        self._pass.missing = [len(group) for group in self._buckets]
        self._pass.started = 0

    def keep(self, index: int) -> None:
        """A gradient that is not averaged in this pass."""
        self._pass.kept.add(index)

    def take(self, index: int) -> None:
        self._pass.ready.append(index)
        if index in self._of_rows:
            return
        self._pass.missing[self._bucket_of[index]] -= 1
        # In the order of buckets, which is the same on all ranks.
        while (
            self._pass.started < len(self._buckets) and self._pass.missing[self._pass.started] == 0
        ):
            self._start(self._pass.started)

    def unused(self) -> list[str]:
        """Parameters without a gradient, which are an error unless they are looked for."""
        if self._find_unused:
            return []
        ready = set(self._pass.ready)
        return [name for index, name in enumerate(self._names) if index not in ready]

    def finish(self) -> None:
        order, self._pass.ready = self._pass.ready, []
        used = self._used(order)
        self._start_rest()
        with tenon.no_grad():
            for entry in self._pass.works:
                if entry is None:  # no other rank has these parameters
                    continue
                members, work = entry
                flat = self._mean_of(members, work)
                if self._is_shadow:
                    continue
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
            if self._holders is not None and not self._is_shadow:
                rows = [(index, self._params[index]) for index in self._of_rows if used[index]]
                for index, grad in gathered_rows(rows, self._holders):
                    self._params[index].grad = grad
        self._pass.works = []
        if not self._is_shadow:
            self._pass.kept.clear()
        if not self._has_order:
            self._adopt_order(order)

    # -- how

    def _set_buckets(self, order: list[int]) -> None:
        order = [index for index in order if index not in self._of_rows]
        groups = buckets_of([local_of(self._params[index]) for index in order], self._bytes)
        self._buckets = [[order[place] for place in group] for group in groups]
        self._bucket_of = {index: b for b, group in enumerate(self._buckets) for index in group}

    def _start_rest(self) -> None:
        while self._pass.started < len(self._buckets):
            self._start(self._pass.started)

    def _start(self, bucket: int) -> None:
        self._pass.started += 1
        if self._holders is None:
            return
        members = self._buckets[bucket]
        with tenon.no_grad():
            parts = []
            for index in members:
                param = self._params[index]
                grad = None if self._is_shadow else param.grad
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
            self._pass.works[bucket] = (members, self._send(bucket, members, flat))

    def _send(self, bucket: int, members: list[int], flat: Tensor) -> Work | Future:
        assert self._holders is not None
        if self._comm_hook is None:
            return mean_later(self._holders, flat)
        state, hook = self._comm_hook
        is_last = bucket == len(self._buckets) - 1
        params = [self._params[index] for index in members]
        return as_future(hook(state, GradBucket(bucket, is_last, flat, params, self._holders)))

    def _mean_of(self, members: list[int], work: Work | Future) -> Tensor:
        flat = work.result() if isinstance(work, Work) else work.wait()
        if self._comm_hook is not None:
            count = sum(local_of(self._params[index]).numel() for index in members)
            if not isinstance(flat, Tensor) or flat.numel() != count:
                got = f"{flat.numel()}" if isinstance(flat, Tensor) else type(flat).__name__
                raise ValueError(
                    f"{OWNER}: expected a hook of gradients whose result is a tensor of {count} numbers, got {got}; "
                    "return what bucket.buffer() became"
                )
            flat = flat.reshape([-1])
        return flat if self._scale == 1.0 else flat * self._scale

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
        for index in () if self._is_shadow else self._pass.kept:
            here[index] = here[index] or self._params[index].grad is not None
        if self._holders is None:
            return here
        # Behind all buckets, which is the same place among the calls of all ranks.
        self._start_rest()
        with tenon.no_grad():
            flags = tenon.tensor(here, device="cpu").to(tenon.uint8)
            return [bool(flag) for flag in self._holders.all_reduce(flags, "max").tolist()]

    def _adopt_order(self, order: list[int]) -> None:
        """Buckets from now on: those that were whole first on the first rank travel first; unused ones at the end."""
        if self._holders is None:
            self._has_order = True
            return
        if (
            recordable(self._holders) is not self._holders
        ):  # steps of a program have an order already
            return
        self._has_order = True
        rest = [index for index in range(len(self._params)) if index not in set(order)]
        told = tenon.tensor([*order, *rest], dtype=tenon.int64, device="cpu")
        with tenon.no_grad():
            self._holders.broadcast(told, self._first)
        self._set_buckets(told.tolist())


def _placed_as(param: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook: parts of gradients are those of the parameter's elements."""

    def place(grad: Tensor) -> Tensor:
        return redistribute(grad, placements=param.placements)

    return place
