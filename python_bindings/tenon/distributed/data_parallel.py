# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: every rank has the whole model and a part of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.nn import Module

from .buckets import MEGABYTE, buckets_of
from .calls import all_gather_object
from .failed_pass import settle_failed_pass
from .gathered_rows import gathered_rows
from .group import ProcessGroup
from .work import Work
from .world import world


class DistributedDataParallel(Module):
    """A module whose gradients are the mean over the ranks of a group, when backward() returns.

    Parameters and buffers become those of rank 0. During backward, gradients of about `bucket_cap_mb` MB at a time are
    summed on a thread of the group while the pass goes on, in the order in which they were whole on rank 0 in the first
    pass; the sum is made in the order of ranks and divided once by their number. With float32 on n ranks, for n a power
    of two, gradients have the bits of one process that accumulates the n parts of the batch and divides by n.

    Inside `no_sync()` gradients stay this rank's own and add up; the next backward outside of it averages their sum.
    A parameter that gets no gradient in a pass is an error that names it, on every rank, unless
    `find_unused_parameters`: then ranks that did not use it, in this pass or inside `no_sync()` before it, take part
    with the gradient they hold or 0, and where no rank did its gradient is left alone. With `broadcast_buffers`, buffers
    become those of rank 0 before every forward pass in training.

    Gradients of rows (docs/sparse.md) travel as rows behind all others: those of tables of Embedding(sparse=True). They
    are gathered and added up in the order of ranks, so that they have the bits of dense ones.

    After a pass that raised at the same place on all ranks the next one is as any other; gradients that the failed one
    left in parameters are this rank's own, so call zero_grad(). If it raised on some ranks only, all ranks get a
    CollectiveError at their next gradients.
    """

    def __init__(
        self,
        module: Module,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float = 25.0,
        find_unused_parameters: bool = False,
        broadcast_buffers: bool = True,
    ) -> None:
        super().__init__()
        self.module = module
        self.process_group = process_group or world()
        self.find_unused_parameters = find_unused_parameters
        self.broadcast_buffers = broadcast_buffers
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise ValueError(
                "DistributedDataParallel: expected a module with parameters that require a gradient, got none"
            )
        self._names = [name for name, _ in named]
        self._params = [p for _, p in named]
        tables = {
            id(getattr(m, "weight", None))
            for m in module.modules()
            if getattr(m, "sparse", False) is True
        }
        self._of_rows = [index for index, p in enumerate(self._params) if id(p) in tables]
        self._bytes = int(bucket_cap_mb * MEGABYTE)
        self._is_syncing = True
        self._has_order = False
        # Gradients come from the last layer first.
        self._set_buckets(list(range(len(named)))[::-1])
        self._pass: int | None = None  # the backward pass that what follows belongs to
        self._ready: list[int] = []  # of this pass, in order
        self._kept: set[int] = set()  # with gradients of this rank alone, as those inside no_sync()
        self._works: list[tuple[list[int], Tensor, Work] | None] = []
        with tenon.no_grad():
            self._agree_on_shapes()
            for tensor in (*module.parameters(), *module.buffers()):
                self.process_group.broadcast(tensor)
        self._hooks = [
            p.register_post_accumulate_grad_hook(self._hook(index))
            for index, p in enumerate(self._params)
        ]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.training and self.broadcast_buffers and self._is_syncing:
            with tenon.no_grad():
                for buffer in self.module.buffers():
                    self.process_group.broadcast(buffer)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside keep gradients to this rank."""
        before, self._is_syncing = self._is_syncing, False
        try:
            yield
        finally:
            self._is_syncing = before

    # -- during a backward pass

    def _agree_on_shapes(self) -> None:
        """Models that differ would be taken for each other where only the numbers of elements are equal."""
        own = [(name, tuple(p.shape), p.dtype.name) for name, p in self.module.named_parameters()]
        for rank, theirs in enumerate(all_gather_object(own, self.process_group)):
            if theirs == own:
                continue
            here, there = next(
                ((a, b) for a, b in zip(own, theirs, strict=False) if a != b),
                (f"{len(own)} parameters", f"{len(theirs)} parameters"),
            )
            raise ValueError(
                f"DistributedDataParallel: expected the same parameters on all ranks, got {here} on rank "
                f"{self.process_group.rank} and {there} on rank {rank}"
            )

    def _set_buckets(self, order: list[int]) -> None:
        order = [index for index in order if index not in self._of_rows]
        groups = buckets_of([self._params[index] for index in order], self._bytes)
        self._buckets = [[order[place] for place in group] for group in groups]
        self._bucket_of = {index: b for b, group in enumerate(self._buckets) for index in group}

    def _hook(self, index: int) -> Any:
        def run(_param: Tensor) -> None:
            if self._is_syncing:
                self._take(index)
            else:
                self._kept.add(index)

        return run

    def _take(self, index: int) -> None:
        number = _core._backward_pass_number()
        if number != self._pass:
            if self._pass is not None:
                self._kept.update(self._ready)
                works = [entry[2] for entry in self._works if entry is not None]
                settle_failed_pass("DistributedDataParallel", self.process_group, works)
            self._pass, self._ready = number, []
            self._works = [None] * len(self._buckets)
            self._missing = [len(group) for group in self._buckets]
            self._started = 0
            _core._call_after_backward(self._finish)
        self._ready.append(index)
        if index in self._of_rows:
            return
        self._missing[self._bucket_of[index]] -= 1
        # In the order of buckets, which is the same on all ranks.
        while self._started < len(self._buckets) and self._missing[self._started] == 0:
            self._start(self._started)

    def _start(self, bucket: int) -> None:
        members = self._buckets[bucket]
        with tenon.no_grad():
            parts = []
            for index in members:
                param = self._params[index]
                grad = param.grad
                if grad is not None and grad.layout != "strided":
                    self._refuse_rows(index)
                part = tenon.zeros_like(param) if grad is None else grad
                parts.append(part.detach().reshape([-1]))
            # A copy, also of one gradient: the program may read .grad meanwhile.
            flat = tenon.concat(parts) if len(parts) > 1 else parts[0].clone()
            work = self.process_group.all_reduce(flat, "mean", flat, async_op=True)
        self._works[bucket] = (members, flat, work)
        self._started += 1

    def _refuse_rows(self, index: int) -> None:
        text = (
            f"DistributedDataParallel: expected a dense gradient of {self._names[index]!r}, got one of rows, which "
            "travels for tables of Embedding(sparse=True) alone"
        )
        self.process_group.abort(text)
        raise NotImplementedError(text)

    def _finish(self) -> None:
        order, self._ready, self._pass = self._ready, [], None
        used = self._used(order)
        with tenon.no_grad():
            while self._started < len(self._buckets):
                self._start(self._started)
            for entry in self._works:
                assert entry is not None
                members, flat, work = entry
                work.wait()
                start = 0
                for index in members:
                    param = self._params[index]
                    part = flat[start : start + param.numel()].reshape(param.shape)
                    start += param.numel()
                    if not used[index]:
                        continue
                    if param.grad is None:
                        param.grad = part.clone()
                    else:
                        param.grad.copy_(part)
            for index, grad in gathered_rows(
                [(index, self._params[index]) for index in self._of_rows if used[index]],
                self.process_group,
            ):
                self._params[index].grad = grad
        self._works = []
        self._kept.clear()
        if not self._has_order:
            self._adopt_order(order)

    def _used(self, order: list[int]) -> list[bool]:
        """Which parameters got a gradient on some rank."""
        here = [False] * len(self._params)
        for index in order:
            here[index] = True
        if not self.find_unused_parameters:
            if all(here):
                return here
            unused = [name for name, is_used in zip(self._names, here, strict=True) if not is_used]
            text = (
                f"DistributedDataParallel: expected gradients of all parameters, got none of {unused} on rank "
                f"{self.process_group.rank}; pass find_unused_parameters=True if ranks use parts of the model, or "
                "take what is not trained out by requires_grad=False before the model is wrapped"
            )
            self.process_group.abort(text)
            raise RuntimeError(text)
        for index in self._kept:
            here[index] = here[index] or self._params[index].grad is not None
        # Behind all buckets, which is the same place among the calls of all ranks.
        while self._started < len(self._buckets):
            self._start(self._started)
        flags = tenon.tensor(here).to(tenon.uint8)
        return [bool(flag) for flag in self.process_group.all_reduce(flags, "max").tolist()]

    def _adopt_order(self, order: list[int]) -> None:
        """Buckets from now on: those that were whole first on rank 0 travel first; unused ones at the end."""
        rest = [index for index in range(len(self._params)) if index not in set(order)]
        told = tenon.tensor([*order, *rest], dtype=tenon.int64)
        with tenon.no_grad():
            self.process_group.broadcast(told)
        self._set_buckets(told.tolist())
        self._has_order = True
