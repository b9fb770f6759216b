# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose state, and gradients, are spread over the ranks: ZeRO stages 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.optim import LookAhead, Optimizer

from .buckets import MEGABYTE, buckets_of
from .calls import all_gather_object
from .dtensor import DTensor, distribute_tensor, from_local, local_of, part_of, redistribute
from .experts import place_of
from .failed_pass import settle_failed_pass
from .group import ProcessGroup
from .mesh import DeviceMesh
from .work import Work
from .world import world


def own_rows(param: Tensor, rank: int, size: int) -> slice:
    """The rows of a parameter that a rank updates; a number counts as one row."""
    rows = param.shape[0] if param.ndim else 1
    return slice(rows * rank // size, rows * (rank + 1) // size)


class _Shard:
    """A parameter and the rows of it that this rank updates: a view, so that updates are made in place. Of a sharded tensor
    they are rows of this rank's part, which all ranks of the group have."""

    def __init__(self, param: Tensor, group: ProcessGroup) -> None:
        self.param, self.part = param, local_of(param)
        self.rows = [own_rows(self.part, rank, group.size) for rank in range(group.size)]
        with tenon.no_grad():
            self.mine = self.of(param, group.rank)

    def of(self, tensor: Tensor, rank: int) -> Tensor:
        """Rows of a rank, of a tensor that lies where the parameter does."""
        whole = local_of(tensor).detach()
        return (whole if whole.ndim else whole.reshape([1]))[self.rows[rank]]

    def gradient(self) -> Tensor | None:
        """This rank's part, where the parameter lies."""
        grad = self.param.grad
        if grad is None:
            return None
        if grad.layout != self.param.layout:
            raise NotImplementedError(
                f"ZeroRedundancyOptimizer: expected a gradient of layout {self.param.layout} of a parameter of shape "
                f"{tuple(self.param.shape)}, got one of layout {grad.layout}"
            )
        if isinstance(grad, DTensor) and grad.placements != self.param.placements:
            self.param.grad = grad = redistribute(grad, placements=self.param.placements)
        return local_of(grad)

    def offset(self, rank: int) -> tuple[int, ...]:
        """Where in the whole parameter the rows of this rank begin."""
        if not self.param.ndim:
            return ()
        start = (self.rows[rank].start, *[0] * (self.param.ndim - 1))
        if not isinstance(self.param, DTensor):
            return start
        part, _ = part_of(self.param)
        return tuple(own + before for own, before in zip(start, part, strict=True))

    def whole(self, part: Tensor) -> Tensor:
        """Of a part of this rank: what lies where the parameter does."""
        if not isinstance(self.param, DTensor):
            return part
        at = self.param.placements
        return from_local(part, self.param.device_mesh, at, shape=tuple(self.param.shape))

    def cut_as_param(self, value: Tensor, rank: int) -> Tensor:
        """Rows of a rank, of a tensor of the parameter's shape that may be whole."""
        if isinstance(self.param, DTensor):
            mesh, at = self.param.device_mesh, self.param.placements
            if not isinstance(value, DTensor):
                value = distribute_tensor(value, mesh, at, src_data_rank=None)
            elif value.placements != at:
                value = redistribute(value, placements=at)
        return self.of(value, rank)

    def cuts(self) -> tuple[DeviceMesh, tuple[int, ...]] | None:
        """The mesh, and its axes on which ranks have different parts; None of a plain parameter."""
        if not isinstance(self.param, DTensor):
            return None
        axes = tuple(axis for axis, at in enumerate(self.param.placements) if at.is_shard())
        return self.param.device_mesh, axes


class ZeroRedundancyOptimizer:
    """An optimizer of which every rank of a group keeps a part: stage 1 its state, stage 2 also gradients.

        optimizer = ZeroRedundancyOptimizer(model.parameters(), tenon.optim.AdamW, stage=2, lr=1e-3)

    Each parameter is cut by rows, as `rows * rank // size`. In stage 1 gradients are averaged by
    DistributedDataParallel, each rank updates its rows, and step() gathers the others'. In stage 2 the model is not
    wrapped: during backward each rank gets the averages of its own rows only, and `.grad` of the parameters is None
    when backward() returns; `clip_grad_norm_` of this class takes the place of the function. Inside `no_sync()`
    gradients add up on this rank. After a backward pass that raised, call zero_grad(): it is as with
    DistributedDataParallel, and some of the pass's gradients are gone.

    Of parameters that are sharded tensors, as parallelize_module makes them on mesh["tp"], the ranks of `process_group` have
    the same parts, such as mesh.get_group("dp"); each rank keeps state for rows of its part.

    Updates have the bits of the same optimizer on one rank. Optimizers that need whole parameters (Lamb, Lars,
    Adafactor, Muon, LBFGS, LookAhead) are refused by name. Schedulers take `optimizer.inner`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        *,
        stage: int = 1,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float = 25.0,
        **defaults: Any,
    ) -> None:
        if stage not in (1, 2):
            raise NotImplementedError(
                f"ZeroRedundancyOptimizer: expected stage 1 or 2, got {stage}"
            )
        if optimizer_class.needs_whole_parameters or issubclass(optimizer_class, LookAhead):
            raise NotImplementedError(
                f"ZeroRedundancyOptimizer: expected an optimizer that updates every number of a parameter by itself, "
                f"such as AdamW, got {optimizer_class.__name__}, which needs whole parameters"
            )
        self.group, self.stage = process_group or world(), stage
        groups = list(params)
        if groups and not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self._shards: list[_Shard] = []
        inner_groups = []
        for group in groups:
            given = group["params"]
            given = [given] if isinstance(given, Tensor) else list(given)
            for param in given:
                if isinstance(param, DTensor):
                    _expect_no_other_rank_of_mesh(param, self.group)
            shards = [_Shard(param, self.group) for param in given]
            experts = [s for s in shards if place_of(s.param) is not None]
            if experts:
                raise NotImplementedError(
                    "ZeroRedundancyOptimizer: expected parameters that all ranks have, got one of shape "
                    f"{tuple(experts[0].param.shape)} of an expert, which is divided over ranks already; give experts an "
                    "optimizer of their own"
                )
            frozen = [s.param for s in shards if not s.param.requires_grad]
            if stage == 2 and frozen:
                raise ValueError(
                    "ZeroRedundancyOptimizer: expected parameters that require a gradient, got one of shape "
                    f"{tuple(frozen[0].shape)} that does not; leave frozen ones out"
                )
            self._shards += shards
            inner_groups.append({**group, "params": [shard.mine for shard in shards]})
        _expect_equal_parts(self._shards, self.group)
        self.inner = optimizer_class(inner_groups, **defaults)
        tensors = [shard.part for shard in self._shards]
        order = list(range(len(tensors)))[::-1]
        self._buckets = [
            [order[place] for place in bucket]
            for bucket in buckets_of(
                [tensors[index] for index in order], int(bucket_cap_mb * MEGABYTE)
            )
        ]
        self._is_syncing = True
        self._pass: int | None = None  # the backward pass that what follows belongs to
        self._pending: list[tuple[list[int], Tensor, Work]] = []  # by bucket
        self._used: list[bool] = []  # which parameters had a gradient on this rank
        if stage == 2:
            self._hooks = [
                shard.param.register_post_accumulate_grad_hook(self._hook(index))
                for index, shard in enumerate(self._shards)
            ]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Options of the inner optimizer, with the rows of this rank as parameters."""
        return self.inner.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, of whole parameters and of this rank's rows."""
        self.inner.zero_grad(set_to_none)
        for shard in self._shards:
            if set_to_none or shard.param.grad is None:
                shard.param.grad = None
            else:
                shard.param.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's rows, and gather those of the others. Every rank calls this."""
        loss = None
        if closure is not None:
            with tenon.enable_grad():
                loss = closure()
        with tenon.no_grad():
            if self.stage == 1:
                for shard in self._shards:
                    grad = shard.gradient()
                    shard.mine.grad = None if grad is None else shard.of(grad, self.group.rank)
            for shard in self._shards:
                if shard.mine.numel() == 0:
                    shard.mine.grad = None  # nothing to update
            self.inner.step()
            if self.stage == 1:
                for shard in self._shards:
                    shard.mine.grad = None
            self._gather()
        return loss

    def no_sync(self) -> Any:
        """Stage 2: backward passes inside keep gradients to this rank."""
        return _Paused(self)

    def clip_grad_norm_(self, max_norm: float) -> Tensor:
        """Stage 2: scale gradients so that their 2-norm, over all parameters and ranks, is `max_norm` at most; returns
        the norm before."""
        if self.stage != 2:
            raise RuntimeError(
                "clip_grad_norm_: expected stage 2, got stage 1, whose gradients are whole on every rank; use "
                "tenon.nn.utils.clip_grad_norm_"
            )
        with tenon.no_grad():
            grads = [shard.mine.grad for shard in self._shards]
            # By how ranks have parts of a parameter: each element counts once. Rows of one without a gradient count 0.
            squares: dict[Any, Tensor] = {None: tenon.zeros([1], dtype=tenon.float32)}
            for shard, grad in zip(self._shards, grads, strict=True):
                cuts = shard.cuts()
                square = squares.get(cuts, tenon.zeros([1], dtype=tenon.float32))
                if grad is not None and grad.numel():
                    wide = grad.to(tenon.float32)
                    square = square + (wide * wide).sum().to("cpu")
                squares[cuts] = square
            sums = self.group.all_reduce(tenon.concat(list(squares.values())))
            total = sums[0:1]
            for index, cuts in enumerate(squares):
                if cuts is None:
                    continue
                square = sums[index : index + 1]
                for axis in cuts[1]:
                    square = cuts[0].get_group(axis).all_reduce(square)
                total = total + square
            norm = tenon.sqrt(total)
            scale = tenon.minimum(max_norm / (norm + 1e-6), tenon.ones([1]))
            for grad in grads:
                if grad is not None and grad.numel():
                    grad.copy_(grad * scale.to(grad.dtype).to(grad.device))
            return norm.reshape([])

    # -- checkpoints

    def own_offsets(self) -> list[tuple[_Shard, tuple[int, ...]]]:
        """The parameters, and where in each the rows of this rank begin: tenon.distributed.checkpoint saves those."""
        return [(shard, shard.offset(self.group.rank)) for shard in self._shards]

    def state_dict(self) -> dict[str, Any]:
        """That of the same optimizer on one rank, on every rank; of sharded parameters it is sharded as they are. Every rank
        calls this."""
        own = self.inner.state_dict()
        keys = [{index: list(state) for index, state in own["state"].items()}]
        for theirs in all_gather_object(keys[0], self.group):
            keys.append(theirs)
        state: dict[int, dict[str, Any]] = {}
        for index, shard in enumerate(self._shards):
            names = next((each[index] for each in keys[1:] if index in each), [])
            mine = own["state"].get(index, {})
            for name in names:
                state.setdefault(index, {})[name] = self._whole_state(shard, mine.get(name))
        return {"state": state, "param_groups": own["param_groups"]}

    def _whole_state(self, shard: _Shard, mine: Any) -> Any:
        """A tensor with the rows of all ranks, or what every rank that has the state has."""
        is_rows = (
            isinstance(mine, Tensor) and tuple(mine.shape) == tuple(shard.mine.shape) and mine.ndim
        )
        kept = _as_numpy(mine) if isinstance(mine, Tensor) else mine
        told = all_gather_object((bool(is_rows), kept, _dtype_name(mine)), self.group)
        found = [each for each in told if each[1] is not None]
        if not found:
            return None
        if not any(each[0] for each in found):
            value = found[0][1]
            return value if found[0][2] is None else tenon.tensor(value).to(found[0][2])
        parts = [tenon.tensor(each[1]).to(each[2]) for each in found]
        whole = tenon.concat(parts, 0)
        return shard.whole(whole.reshape(shard.part.shape).to(shard.part.device))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What state_dict() returned, with any number of ranks, or the same optimizer on one."""
        cut: dict[int, dict[str, Any]] = {}
        for index, shard in enumerate(self._shards):
            if index not in state["state"] or shard.mine.numel() == 0:
                continue
            cut[index] = {
                name: shard.cut_as_param(value, self.group.rank).clone()
                if isinstance(value, Tensor) and tuple(value.shape) == tuple(shard.param.shape)
                else value
                for name, value in state["state"][index].items()
            }
        self.inner.load_state_dict({"state": cut, "param_groups": state["param_groups"]})

    # -- how

    def _hook(self, index: int) -> Any:
        def run(_param: Tensor) -> None:
            if not self._is_syncing:
                return
            number = _core._backward_pass_number()
            if number != self._pass:
                if self._pass is not None:
                    works = [work for _, _, work in self._pending]
                    settle_failed_pass("ZeroRedundancyOptimizer", self.group, works)
                self._pass, self._pending = number, []
                self._used = [False] * len(self._shards)
                self._missing = [len(bucket) for bucket in self._buckets]
                _core._call_after_backward(self._finish)
            bucket = next(b for b, members in enumerate(self._buckets) if index in members)
            self._missing[bucket] -= 1
            while (
                len(self._pending) < len(self._buckets) and self._missing[len(self._pending)] == 0
            ):
                self._scatter(len(self._pending))

        return run

    def _padded(self, members: list[int], of: Callable[[_Shard, int], Tensor]) -> Tensor:
        """[ranks, numbers]: for each rank its rows of all members, one behind the other, and zeros to equal length."""
        shards = [self._shards[index] for index in members]
        like = shards[0].part
        rows = []
        length = max(
            sum(shard.of(shard.part, rank).numel() for shard in shards)
            for rank in range(self.group.size)
        )
        for rank in range(self.group.size):
            parts = [of(shard, rank).reshape([-1]) for shard in shards]
            missing = length - sum(part.numel() for part in parts)
            parts.append(tenon.zeros([missing], dtype=like.dtype, device=like.device))
            rows.append(tenon.concat(parts).reshape([1, length]))
        return tenon.concat(rows, 0)

    def _scatter(self, bucket: int) -> None:
        """Begin to send the gradients of a bucket to those who own their rows."""
        members = self._buckets[bucket]
        with tenon.no_grad():

            def grad_of(shard: _Shard, rank: int) -> Tensor:
                grad = shard.gradient()
                return shard.of(tenon.zeros_like(shard.part) if grad is None else grad, rank)

            padded = self._padded(members, grad_of)
            out = tenon.empty([1, padded.shape[1]], dtype=padded.dtype, device=padded.device)
            work = self.group.reduce_scatter(padded, "mean", out, async_op=True)
            for index in members:
                param = self._shards[index].param
                self._used[index] = param.grad is not None
                param.grad = None
        self._pending.append((members, out, work))

    def _finish(self) -> None:
        self._pass = None
        while len(self._pending) < len(self._buckets):
            self._scatter(len(self._pending))
        with tenon.no_grad():
            flags = tenon.tensor(self._used, device="cpu").to(tenon.uint8)
            used = self.group.all_reduce(flags, "max").tolist()
            for members, out, work in self._pending:
                work.wait()
                flat, start = out.reshape([-1]), 0
                for index in members:
                    mine = self._shards[index].mine
                    part = flat[start : start + mine.numel()].reshape(mine.shape)
                    start += mine.numel()
                    if not used[index]:
                        continue  # the optimizer leaves it alone, as on one rank
                    if mine.grad is None:
                        mine.grad = part.clone()
                    else:
                        mine.grad.copy_(mine.grad + part)
        self._pending = []

    def _gather(self) -> None:
        """Give each rank the rows that the others have updated."""
        rank, size = self.group.rank, self.group.size
        if size == 1:
            return
        for members in self._buckets:
            shards = [self._shards[index] for index in members]
            lengths = [
                sum(shard.of(shard.part, other).numel() for shard in shards)
                for other in range(size)
            ]
            like = shards[0].part
            missing = max(lengths) - lengths[rank]
            parts = [shard.mine.reshape([-1]) for shard in shards]
            parts.append(tenon.zeros([missing], dtype=like.dtype, device=like.device))
            gathered = self.group.all_gather(tenon.concat(parts).reshape([1, max(lengths)]))
            for other in range(size):
                start = 0
                for shard in shards:
                    into = shard.of(shard.part, other)
                    if other != rank and into.numel():
                        into.copy_(
                            gathered[other][start : start + into.numel()].reshape(into.shape)
                        )
                    start += into.numel()


class _Paused:
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def __enter__(self) -> None:
        self._before, self._optimizer._is_syncing = self._optimizer._is_syncing, False

    def __exit__(self, *_: object) -> None:
        self._optimizer._is_syncing = self._before


def _expect_equal_parts(shards: list[_Shard], group: ProcessGroup) -> None:
    """Of sharded parameters the ranks of the group have the same parts: those of mesh["tp"] lie on different meshes, so that
    ranks have to tell each other."""
    own = [part_of(s.param) for s in shards if isinstance(s.param, DTensor)]
    if not own:
        return
    for rank, theirs in enumerate(all_gather_object(own, group)):
        if theirs != own:
            raise ValueError(
                "ZeroRedundancyOptimizer: expected a process_group whose ranks have the same part of each sharded parameter, "
                f"such as mesh.get_group('dp'), got (offset, shape) {own} on rank {group.rank} of it and {theirs} on "
                f"rank {rank}"
            )


def _expect_no_other_rank_of_mesh(param: Any, group: ProcessGroup) -> None:
    mesh = param.device_mesh
    if set(mesh.ranks) & set(group.ranks) != {group.ranks[group.rank]}:
        raise ValueError(
            f"ZeroRedundancyOptimizer: expected a process_group without other ranks of the mesh of a sharded parameter of "
            f"shape {tuple(param.shape)}, {mesh!r}, such as mesh.get_group('dp') of a mesh with one more axis, got ranks "
            f"{list(group.ranks)}"
        )
    if any(placement.is_partial() for placement in param.placements):
        raise ValueError(
            f"ZeroRedundancyOptimizer: expected Shard(dim) and Replicate() of a parameter, got {param.placements}"
        )


def _as_numpy(value: Tensor) -> Any:
    """The numbers; NumPy has no float smaller than 16 bits, and no bfloat16, all of which float32 holds."""
    is_narrow = value.dtype.is_floating_point and value.dtype.itemsize < 4
    return (value.to(tenon.float32) if is_narrow else value).to("cpu").numpy()


def _dtype_name(value: Any) -> str | None:
    return value.dtype.name if isinstance(value, Tensor) else None
