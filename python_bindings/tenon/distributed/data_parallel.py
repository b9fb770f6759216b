# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: every rank has the whole model and a part of the batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.nn import Module

from .buckets import MEGABYTE
from .calls import all_gather_object
from .comm_hooks import GradBucket
from .dtensor import DTensor, local_of, part_of
from .experts import ExpertParallel, ExpertPlace, place_of
from .fully_shard import ShardedParameter
from .group import ProcessGroup
from .join import Join
from .recorded_calls import recordable
from .reducer import Reducer
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

    Experts of ExpertParallel are no rank's alone: their gradients, which are sums over the tokens of all ranks, are summed
    over the ranks with the same experts and divided by the number of all ranks. Parameters of modules that fully_shard was
    called with are averaged by these.

    Of sharded tensors the ranks of the group have the same parts, as those of mesh.get_group("dp") do where parameters are
    cut over mesh["tp"]: parts are averaged.

    Gradients of rows (docs/sparse.md) travel as rows behind all others: those of tables of Embedding(sparse=True). They
    are gathered and added up in the order of ranks, so that they have the bits of dense ones.

    `register_comm_hook` has gradients travel in another way (comm_hooks.py); inside `join()` ranks may have differently many
    batches.

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
        named = [(name, p) for name, p in self._named_parameters() if p.requires_grad]
        if not named:
            raise ValueError(
                "DistributedDataParallel: expected a module with parameters that require a gradient, got none"
            )
        self._expect_same_parts()
        self._places = self._places_of_experts()
        self._is_syncing = True
        self._pass: int | None = None  # the backward pass that what follows belongs to
        self._joining: Join | None = None
        self._has_comm_hook = False
        with tenon.no_grad():
            self._agree_on_shapes()
            for tensor in (*(p for _, p in self._named_parameters()), *module.buffers()):
                self._broadcast(tensor)
        tables = {
            id(getattr(m, "weight", None))
            for m in module.modules()
            if getattr(m, "sparse", False) is True
        }
        self._reducers = []
        for place in (None, *self._places):
            members = [(name, p) for name, p in named if place_of(p) == place]
            if not members:
                continue
            reducer = Reducer(
                [name for name, _ in members],
                [p for _, p in members],
                self.process_group if place is None else place.replicas,
                self.process_group.size,
                int(bucket_cap_mb * MEGABYTE),
                find_unused_parameters,
                [index for index, (_, p) in enumerate(members) if id(p) in tables],
            )
            self._reducers.append(reducer)
            for index, (_, p) in enumerate(members):
                p.register_post_accumulate_grad_hook(self._hook(reducer, index))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        sends_buffers = self.training and self.broadcast_buffers and self._is_syncing
        first = 0
        if self._joining is not None and tenon.is_grad_enabled():
            first = self._joining.go_on(self._is_syncing, sends_buffers)
        if sends_buffers:
            self._send_buffers(first)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside keep gradients to this rank."""
        before, self._is_syncing = self._is_syncing, False
        try:
            yield
        finally:
            self._is_syncing = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """From now on `hook(state, bucket)` makes the mean of each bucket of gradients, as those of
        tenon.distributed.comm_hooks do. Every rank registers the same one, once. Gradients of rows travel as they are."""
        if self._has_comm_hook:
            raise RuntimeError(
                "DistributedDataParallel: expected no hook of gradients, got a second one; wrap the module anew"
            )
        if not callable(hook):
            raise TypeError(
                f"DistributedDataParallel: expected a callable hook(state, bucket), got {type(hook).__name__}"
            )
        self._has_comm_hook = True
        for reducer in self._reducers:
            reducer.set_comm_hook(state, hook)

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Inside, ranks may have differently many batches: one that has no more takes part in the others' calls with zeros,
        until all are done. Then parameters and buffers become those of a rank that was last.

        Gradients are sums divided by the number of all ranks, or of those that go on where `divide_by_initial_world_size`
        is False. With `throw_on_early_termination` all ranks get a RuntimeError when the first one is done.
        """
        if not enable:
            yield
            return
        if self._joining is not None:
            raise RuntimeError("DistributedDataParallel: expected one join() at a time")
        self._expect_joinable()
        self._joining = joining = Join(
            self, divide_by_initial_world_size, throw_on_early_termination
        )
        try:
            yield
            joining.wait_for_others()
        finally:
            self._joining = None
            for reducer in self._reducers:
                reducer.join_with(1.0, 0)

    # -- what ranks have

    def _named_parameters(self) -> list[tuple[str, Tensor]]:
        """Those that fully_shard has made parts of are averaged by it."""
        whole: list[tuple[str, Tensor]] = []
        for name, param in self.module.named_parameters():
            if not isinstance(param, ShardedParameter):
                whole.append((name, param))
                continue
            copies = 1 if param.replicas is None else len(param.replicas.ranks)
            averaged = {
                *param.group.ranks,
                *(() if param.replicas is None else param.replicas.ranks),
            }
            everyone = self.process_group
            if not averaged <= set(everyone.ranks) or param.group.size * copies != everyone.size:
                raise ValueError(
                    f"DistributedDataParallel: expected parts of {name} on ranks {list(everyone.ranks)}, as gradients are "
                    f"averaged over them, got {list(param.group.ranks)}{f' and {copies} replicas' if copies > 1 else ''}"
                )
        return whole

    def _expect_same_parts(self) -> None:
        """Of sharded tensors, on all ranks of the group."""
        tensors = (*self.module.named_parameters(), *self.module.named_buffers())
        for name, tensor in tensors:
            if not isinstance(tensor, DTensor):
                continue
            mesh, group = tensor.device_mesh, self.process_group
            if set(mesh.ranks) & set(group.ranks) != {group.ranks[group.rank]}:
                raise ValueError(
                    f"DistributedDataParallel: expected a process_group without other ranks of the mesh of {name}, {mesh!r}, "
                    f"such as mesh.get_group('dp') of a mesh with one more axis, got ranks {list(group.ranks)}"
                )
            if any(placement.is_partial() for placement in tensor.placements):
                raise ValueError(
                    f"DistributedDataParallel: expected Shard(dim) and Replicate() of {name}, got {tensor.placements}"
                )

    def _places_of_experts(self) -> list[ExpertPlace]:
        """Of the experts in the model, which must be divided over all ranks of the group."""
        found: list[ExpertPlace] = []
        inside: set[int] = set()
        for each in self.module.modules():
            if not isinstance(each, ExpertParallel):
                continue
            each.mark()
            inside.update(id(tensor) for tensor in (*each.parameters(), *each.buffers()))
            place, group = each.place, self.process_group
            holders = group if place.replicas is None else place.replicas
            if place.ranks != group.size or not {*place.group.ranks, *holders.ranks} <= {
                *group.ranks
            }:
                raise ValueError(
                    f"DistributedDataParallel: expected experts that are divided over ranks {list(group.ranks)}, got "
                    f"{place.group.size} ranks with different ones, {list(place.group.ranks)}, and {place.holders} with "
                    "the same; give ExpertParallel the group of these as replicas"
                )
            if place not in found:
                found.append(place)
        experts = {id(p) for p in (*self.module.parameters(), *self.module.buffers())} & inside
        if experts:
            self._expect_apart(self.module, experts)
        return found

    def _expect_apart(self, module: Module, experts: set[int], path: str = "") -> None:
        """What experts and other modules have in common would be changed apart by ranks."""
        if isinstance(module, ExpertParallel):
            return
        for name, value in vars(module).items():
            full = f"{path}.{name}".strip(".")
            if isinstance(value, Module):
                self._expect_apart(value, experts, full)
            elif isinstance(value, Tensor) and id(value) in experts:
                raise ValueError(
                    f"DistributedDataParallel: expected parameters of experts that no other module has, got {full}"
                )

    def _expect_joinable(self) -> None:
        if self._places or any(reducer.has_rows for reducer in self._reducers):
            what = "experts" if self._places else "gradients of rows"
            raise NotImplementedError(
                f"DistributedDataParallel.join: expected a model without {what}, as a rank that is done has none to take part "
                "with; give ranks equally many batches (dist.DistributedBatchSampler)"
            )
        if any(isinstance(param, ShardedParameter) for param in self.module.parameters()):
            raise NotImplementedError(
                "DistributedDataParallel.join: expected a model that is not fully_shard'ed, whose parameters all ranks gather "
                "in each pass; give ranks equally many batches (dist.DistributedBatchSampler)"
            )

    def _broadcast(self, tensor: Tensor, root: int = 0) -> None:
        place = place_of(tensor)
        group = self.process_group if place is None else place.replicas
        if group is not None:
            own = local_of(tensor)
            calls = recordable(group)
            if own.numel() and calls is group:
                group.broadcast(own, root)
            elif own.numel():  # a step of a program
                own.copy_(calls.broadcast(own, root))

    def _send_buffers(self, root: int) -> None:
        with tenon.no_grad():
            for buffer in self.module.buffers():
                self._broadcast(buffer, root)

    def _agree_on_shapes(self) -> None:
        """Models that differ would be taken for each other where only the numbers of elements are equal."""
        for place in (None, *self._places):
            group = self.process_group if place is None else place.replicas
            if group is None:
                continue
            own = [
                (name, tuple(p.shape), p.dtype.name, *_part(p))
                for name, p in self._named_parameters()
                if place_of(p) == place
            ]
            for rank, theirs in enumerate(all_gather_object(own, group)):
                if theirs == own:
                    continue
                here, there = next(
                    ((a, b) for a, b in zip(own, theirs, strict=False) if a != b),
                    (f"{len(own)} parameters", f"{len(theirs)} parameters"),
                )
                raise ValueError(
                    f"DistributedDataParallel: expected the same parameters on all ranks, got {here} on rank "
                    f"{group.rank} and {there} on rank {rank}"
                )

    # -- during a backward pass

    def _hook(self, reducer: Reducer, index: int) -> Any:
        def run(_param: Tensor) -> None:
            if self._is_syncing:
                self._take(reducer, index)
            else:
                reducer.keep(index)

        return run

    def _take(self, reducer: Reducer, index: int) -> None:
        number = _core._backward_pass_number()
        if number != self._pass:
            if self._pass is not None:
                for each in self._reducers:
                    each.settle_failed()
            self._pass = number
            for each in self._reducers:
                each.begin()
            _core._call_after_backward(self._finish)
        reducer.take(index)

    def _finish(self) -> None:
        self._pass = None
        unused = [name for reducer in self._reducers for name in reducer.unused()]
        if unused:
            text = (
                f"DistributedDataParallel: expected gradients of all parameters, got none of {unused} on rank "
                f"{self.process_group.rank}; pass find_unused_parameters=True if ranks use parts of the model, or "
                "take what is not trained out by requires_grad=False before the model is wrapped"
            )
            self.process_group.abort(text)
            raise RuntimeError(text)
        for reducer in self._reducers:
            reducer.finish()


def _part(param: Tensor) -> list[Any]:
    """Of a sharded parameter, which lies on another mesh["tp"] on each rank: its placements, and which part is here."""
    return [repr(param.placements), *part_of(param)] if isinstance(param, DTensor) else []
