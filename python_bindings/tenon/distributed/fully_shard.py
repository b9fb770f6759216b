# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 3: parameters of a module that are whole only while the module runs, and while its gradients are made.

A unit is what one call of fully_shard makes. Its parameters are cut by rows, as ZeRO's other stages cut them, and the
rows of this rank are what the module has as parameters. The module's forward sees whole tensors, which a function with a
gradient gathers: backward, the function gets the gradients of all of them, and gives each rank the mean of its rows. What
operators save of whole tensors is saved as a place in the unit, and gathered again when backward wants it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import Function, Tensor
from tenon.autograd import saved_tensors_hooks
from tenon.nn import Module, Parameter
from tenon.utils.checkpoint import is_inside, surrounding

from . import host_group as host
from .calls import all_gather_object
from .dtensor import DTensor, from_local, local_of, part_of
from .experts import place_of
from .group import ProcessGroup
from .mesh import DeviceMesh
from .placements import Placement, part_of_whole
from .prefetch import order_of
from .work import Work
from .world import world
from .zero import own_rows


@dataclasses.dataclass(frozen=True)
class Cut:
    """How a parameter was sharded before a unit took it: its ranks gather this rank's part, which modules see as the sharded
    tensor that it was."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]  # of the whole

    @property
    def parts(self) -> int:
        """How many different ones there are on the mesh."""
        sizes = zip(self.placements, self.mesh.shape, strict=True)
        return math.prod(size for placement, size in sizes if placement.is_shard())

    @property
    def offset(self) -> tuple[int, ...]:
        place = self.mesh.get_coordinate()
        return part_of_whole(self.shape, self.placements, self.mesh.shape, place)[0]

    def whole(self, part: Tensor) -> Tensor:
        return from_local(part, self.mesh, self.placements, shape=self.shape)


class ShardedParameter(Parameter):
    """Rows of a parameter that no rank has whole: those from `offset` on, of `whole_shape`."""

    whole_shape: tuple[int, ...]
    offset: tuple[int, ...]
    is_part = True  # optimizers that need whole parameters refuse it
    group: ProcessGroup  # the ranks that have its rows
    replicas: ProcessGroup | None = None  # the ranks that have these rows
    cut: Cut | None = (
        None  # rows of the part of a sharded tensor that this rank and those ranks have
    )


class _Slot:
    """A parameter of a unit: where modules have it, and its rows by rank."""

    def __init__(self, param: Tensor, group: ProcessGroup, replicas: ProcessGroup | None) -> None:
        self.cut = None
        requires_grad = param.requires_grad
        if isinstance(param, DTensor):
            self.cut = Cut(param.device_mesh, param.placements, tuple(param.shape))
        param = local_of(param)
        self.shape = tuple(param.shape)
        self.dtype, self.device = param.dtype, param.device
        # Modules own units, and not the other way round: memory is free when the model is.
        self.owners: list[tuple[weakref.ref[Module], str]] = []
        # A number counts as one row.
        self.rows_shape = self.shape or (1,)
        self.rows = [own_rows(param, rank, group.size) for rank in range(group.size)]
        with tenon.no_grad():
            own = param.detach().reshape(list(self.rows_shape))[self.rows[group.rank]].clone()
        self.shard = ShardedParameter(own, requires_grad)
        self.shard.group, self.shard.replicas, self.shard.cut = group, replicas, self.cut
        start = self.rows[group.rank].start
        offset = (start, *[0] * (len(self.shape) - 1)) if self.shape else ()
        self.shard.whole_shape, self.shard.offset = self.shape, offset
        if self.cut is not None:
            self.shard.whole_shape = self.cut.shape
            self.shard.offset = tuple(map(operator.add, offset, self.cut.offset))

    def seen(self, whole: Tensor) -> Tensor:
        """What modules see of what is gathered."""
        return whole if self.cut is None else self.cut.whole(whole)

    def put(self, tensor: Tensor) -> None:
        for owner, name in self.owners:
            module = owner()
            if module is not None:
                vars(module)[name] = tensor


_numbers = itertools.count()


class Unit:
    """The parameters that are gathered together."""

    def __init__(
        self,
        name: str,
        slots: list[_Slot],
        group: ProcessGroup,
        reshards: bool,
        dtype: Any = None,
        reduce_dtype: Any = None,
        replicas: ProcessGroup | None = None,
    ) -> None:
        self.number = next(_numbers)  # which no other unit of this process ever has
        self.name, self.slots, self.group, self.reshards = name, slots, group, reshards
        # Of whole tensors, and of gradients on their way; None: those of parameters, and of whole tensors.
        self.dtype, self.reduce_dtype = dtype, reduce_dtype
        self.replicas = replicas  # ranks with the same rows
        self.sends_gradients = True
        self._kept: list[Tensor | None] = [None] * len(slots)  # whole gradients of this rank alone
        self.gathers = self.gathers_ahead = 0  # how often, for those who count
        self._wholes: list[Tensor] | None = None  # while backward needs them
        self._whole_versions: list[int] = []  # of the rows that those were gathered of
        self._owed = 0  # saved tensors that backward has not requested yet

    def __deepcopy__(self, memo: object) -> Unit:
        raise TypeError(
            "fully_shard: a sharded module cannot be copied, because its parameters are gathered with those of the other "
            "ranks; copy it before, or load a checkpoint into another one"
        )

    # -- whole tensors

    def start(self, ahead: bool = False) -> Callable[[], list[Tensor]]:
        """Gather, or begin to, `ahead` of the call that needs it; the result waits, and returns whole tensors, which no other unit and no earlier call has."""
        self.gathers += 1
        self.gathers_ahead += ahead
        wholes = [
            tenon.empty(list(slot.rows_shape), dtype=self._dtype_of(slot), device=slot.device)
            for slot in self.slots
        ]
        size = self.group.size
        works: list[Work] = []
        with tenon.no_grad():
            for members in _of_one_kind(self.slots):
                own = {i: self._sent(self.slots[i]) for i in members}
                sends = [(own[i], r) for r in range(size) for i in members]
                receives = [
                    (wholes[i][self.slots[i].rows[r]], r) for r in range(size) for i in members
                ]
                work = self.group._lists(host.ALL_TO_ALL, sends, receives, 0, None, ahead)
                works += [work] if ahead else []

        def finish() -> list[Tensor]:
            for work in works:
                work.wait()
            with tenon.no_grad():
                return [w.reshape(list(s.shape)) for w, s in zip(wholes, self.slots, strict=True)]

        return finish

    def _dtype_of(self, slot: _Slot, dtype: Any = None) -> Any:
        """Of a parameter's whole tensor; numbers that are no floating-point ones stay what they are."""
        dtype = dtype or self.dtype
        return dtype if dtype is not None and slot.dtype.is_floating_point else slot.dtype

    def _sent(self, slot: _Slot) -> Tensor:
        rows, dtype = slot.shard.detach(), self._dtype_of(slot)
        return rows if rows.dtype == dtype else rows.to(dtype)

    def gather(self, is_in_pass: bool = True) -> list[Tensor]:
        """Whole tensors; in a pass, the next unit is gathered while the program goes on with these."""
        return order_of(self.group).gather(self) if is_in_pass else self.start()()

    def versions(self) -> list[int]:
        return [slot.shard._version for slot in self.slots]

    def scatter(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        """The mean over the ranks of this rank's rows of each gradient, as ZeRO's stage 2 makes it; None of all of them while
        gradients stay on this rank."""
        size, rank = self.group.size, self.group.rank
        result: list[Tensor | None] = [None] * len(grads)
        with tenon.no_grad():
            grads = [self._with_kept(i, grad) for i, grad in enumerate(grads)]
        if not self.sends_gradients:
            self._kept = grads
            return result
        self._kept = [None] * len(grads)
        trained = [i for i, slot in enumerate(self.slots) if slot.shard.requires_grad]
        with tenon.no_grad():
            for members in _of_one_kind([self.slots[i] for i in trained]):
                chosen = [trained[i] for i in members]
                padded = self._padded(chosen, grads)
                out = tenon.empty([1, padded.shape[1]], dtype=padded.dtype, device=padded.device)
                flat = self.group.reduce_scatter(padded, "mean", out).reshape([-1])
                if self.replicas is not None:
                    flat = self.replicas.all_reduce(flat, "mean")
                start = 0
                for i in chosen:
                    shard = self.slots[i].shard
                    part = flat[start : start + shard.numel()].reshape(list(shard.shape))
                    start += shard.numel()
                    if part.dtype != shard.dtype:
                        result[i] = part.to(shard.dtype)
                    else:
                        result[i] = part.clone() if size > 1 or rank else part
        return result

    def _with_kept(self, index: int, grad: Tensor | None) -> Tensor | None:
        dtype = self._dtype_of(self.slots[index], self.reduce_dtype)
        if grad is not None and grad.dtype != dtype:
            grad = grad.to(dtype)
        kept = self._kept[index]
        return grad if kept is None else kept if grad is None else kept + grad

    def _padded(self, chosen: list[int], grads: list[Tensor | None]) -> Tensor:
        """[ranks, numbers]: for each rank its rows of the gradients, one behind the other, and zeros to equal length."""
        size = self.group.size
        lengths = []
        rows_of_ranks = []
        for rank in range(size):
            parts = []
            for i in chosen:
                slot, grad = self.slots[i], grads[i]
                if grad is None:  # not used on this rank
                    dtype = self._dtype_of(slot, self.reduce_dtype)
                    grad = tenon.zeros(list(slot.shape), dtype=dtype, device=slot.device)
                parts.append(grad.reshape(list(slot.rows_shape))[slot.rows[rank]].reshape([-1]))
            rows_of_ranks.append(parts)
            lengths.append(sum(part.numel() for part in parts))
        like = self.slots[chosen[0]]
        rows = []
        for parts, length in zip(rows_of_ranks, lengths, strict=True):
            missing = max(lengths) - length
            dtype = self._dtype_of(like, self.reduce_dtype)
            zeros = tenon.zeros([missing], dtype=dtype, device=like.device)
            rows.append(tenon.concat([*parts, zeros]).reshape([1, max(lengths)]))
        return tenon.concat(rows, 0)

    # -- during a call of the module

    @contextlib.contextmanager
    def whole(self, is_in_pass: bool = True) -> Iterator[None]:
        """Modules have whole tensors inside."""
        shards = [slot.shard for slot in self.slots]
        records = tenon.is_grad_enabled() and any(shard.requires_grad for shard in shards)
        if records:
            # Frozen ones among trained ones get no gradient, which operators would make for nothing.
            wholes = [
                whole if shard.requires_grad else whole.detach()
                for whole, shard in zip(_Gather.apply(self, *shards), shards, strict=True)
            ]
        else:
            wholes = self.gather(is_in_pass)
        saved: Any = contextlib.nullcontext()
        # What a region of checkpoint computes again, it gathers again.
        if self.reshards and tenon.is_grad_enabled() and not is_inside():
            spans = [
                (w.data_ptr(), w.data_ptr() + w.nbytes) for w in wholes if w.device.kind != "meta"
            ]
            saved = saved_tensors_hooks(lambda x: self._pack(x, spans), self._unpack)
        for slot, tensor in zip(self.slots, wholes, strict=True):
            slot.put(slot.seen(tensor))
        del wholes
        try:
            with saved, surrounding(self._whole_again):
                yield
        finally:
            for slot in self.slots:
                slot.put(slot.shard)

    @contextlib.contextmanager
    def _whole_again(self, function: Callable) -> Iterator[None]:
        """Modules have whole tensors in the second run of a checkpointed function, but where it is a module that has none of
        this unit's parameters."""
        module = getattr(function, "__self__", function)
        owners = {id(owner()) for slot in self.slots for owner, _ in slot.owners}
        if isinstance(module, Module) and owners.isdisjoint(map(id, module.modules())):
            yield
            return
        is_trained = any(slot.shard.requires_grad for slot in self.slots)
        # Frozen units have no backward pass that would release what is kept for it.
        wholes = self._for_backward() if is_trained else self.gather()
        before = [
            (module, name, vars(module)[name])
            for slot in self.slots
            for owner, name in slot.owners
            if (module := owner()) is not None
        ]
        for slot, tensor in zip(self.slots, wholes, strict=True):
            whole = tensor.detach().requires_grad_(slot.shard.requires_grad)
            slot.put(slot.seen(whole))
        try:
            yield
        finally:
            for module, name, value in before:
                vars(module)[name] = value

    def _for_backward(self) -> list[Tensor]:
        """Whole tensors that are kept until backward has what it needs, or rows change."""
        versions = self.versions()
        if self._wholes is None or self._whole_versions != versions:
            self._wholes, self._whole_versions = self.gather(), versions
        return self._wholes

    def _pack(self, x: Tensor, spans: list[tuple[int, int]]) -> Any:
        if isinstance(x, DTensor):
            place = self._pack(local_of(x), spans)
            cut = Cut(x.device_mesh, x.placements, tuple(x.shape))
            return x if isinstance(place, Tensor) else (cut, place)
        address = x.data_ptr() if x.numel() else 0
        for index, (begin, end) in enumerate(spans):
            if begin <= address < end:
                self._owed += 1
                offset = (address - begin) // x.dtype.itemsize
                version = self.slots[index].shard._version
                return index, version, offset, tuple(x.shape), tuple(x.strides)
        alike = self._looks_like(x) if x.device.kind == "meta" else None
        if alike is not None:
            self._owed += 1
            version = self.slots[alike].shard._version
            return alike, version, 0, tuple(x.shape), tuple(x.strides)
        return x

    def _looks_like(self, x: Tensor) -> int | None:
        """Which whole tensor one without an address is, or is the transpose of: what has the shape and strides of one."""
        for index, slot in enumerate(self.slots):
            shape, dtype = slot.rows_shape, self._dtype_of(slot)
            is_whole = tuple(x.shape) == shape and x.is_contiguous()
            is_transposed = tuple(x.shape) == shape[::-1] and tuple(x.strides[::-1]) == tuple(
                math.prod(shape[axis + 1 :]) for axis in range(len(shape))
            )
            if x.dtype == dtype and len(shape) > 1 and (is_whole or is_transposed):
                return index
        return None

    def _unpack(self, packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        if isinstance(packed[0], Cut):
            return packed[0].whole(self._unpack(packed[1]))
        index, version, offset, shape, strides = packed
        found = self.slots[index].shard._version
        if found != version:
            raise RuntimeError(
                f"fully_shard: a parameter of shape {self.slots[index].shape} of {self.name} was modified in place between "
                f"forward and backward: expected version {version} of its rows, found version {found}; run backward before "
                "parameters change"
            )
        base = self._for_backward()[index].reshape([-1])
        view = base[offset:].as_strided(list(shape), list(strides))
        self._owed -= 1
        if self._owed <= 0:
            self.release()
        return view

    def release(self) -> None:
        """Backward has what it needs; what an operator holds lives as long as that."""
        self._wholes, self._whole_versions, self._owed = None, [], 0


class _Gather(Function):
    """Whole tensors of the shards of a unit; backward, the mean over the ranks of each shard's gradient."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, *_shards: Tensor) -> tuple[Tensor, ...]:
        ctx.unit = unit
        ctx.set_materialize_grads(False)
        return tuple(unit.gather())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        ctx.unit.release()
        return (None, *ctx.unit.scatter(list(grads)))


def _of_one_kind(slots: list[_Slot]) -> list[list[int]]:
    """Indices of those that can travel together."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for index, slot in enumerate(slots):
        kinds.setdefault((slot.dtype.name, str(slot.device)), []).append(index)
    return list(kinds.values())


class FullyShardedModule(Module):
    """What fully_shard makes of a module's class."""

    _unit: Unit

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._unit.dtype is not None:
            args, kwargs = _converted((args, kwargs), self._unit.dtype)
        # Units below may have left no parameter to this one.
        with self._unit.whole() if self._unit.slots else contextlib.nullcontext():
            return super().forward(*args, **kwargs)

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward passes from now on send gradients. While they do not, this rank keeps whole gradients of its own,
        to which the first pass that sends adds: micro-batches then take one call. With `recurse` also of units below."""
        for unit in units_of(self) if recurse else [self._unit]:
            unit.sends_gradients = requires_gradient_sync


def _converted(value: Any, dtype: Any) -> Any:
    """What a module is called with, its floating-point tensors in another dtype."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype.is_floating_point else value
    if type(value) in (tuple, list):
        return type(value)(_converted(each, dtype) for each in value)
    if type(value) is dict:
        return {key: _converted(each, dtype) for key, each in value.items()}
    return value


def fully_shard(
    module: Module,
    process_group: ProcessGroup | None = None,
    reshard_after_forward: bool = True,
    *,
    dtype: Any = None,
    reduce_dtype: Any = None,
    replicas: ProcessGroup | None = None,
    mesh: DeviceMesh | None = None,
) -> Module:
    """Keep this rank's rows of the parameters of a module alone, outside of its forward and backward passes: ZeRO stage 3.

        for block in model.blocks:
            dist.fully_shard(block)
        dist.fully_shard(model)                                # what is left
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)   # of rows; made behind it

    Parameters below `module` that no unit has become one: they are gathered together when the module is called. Units below
    may leave it none. It
    changes the module in place and returns it. Values become those of rank 0. Gradients are means over the ranks, of this
    rank's rows; with n ranks a parameter takes, in float32 with Adam, 16 / n bytes and room for a unit or two. With
    `reshard_after_forward=False` whole parameters stay from forward to backward, which saves gathering them again.

    With `dtype`, such as tenon.bfloat16, whole parameters are of that dtype, travel so, and the module gets its
    floating-point arguments in it; gradients are added up in it as well, or in `reduce_dtype`. Rows, and so what the
    optimizer updates, keep theirs. `module.set_requires_gradient_sync(False)` keeps gradients of micro-batches to the rank.

    Parameters that are sharded tensors already, as parallelize_module makes them on mesh["tp"], are cut once more: of this
    rank's part, whose ranks in `process_group`, mesh.get_group("dp"), have the same one. Modules see sharded tensors.

    `process_group` may be a part of the job, such as the ranks of one machine: `replicas` are then the ranks that have the same
    rows, one in each such part, over which gradients are averaged, too. Weights travel inside of a part alone. A `mesh` of two
    axes says both: rows are divided along the second, and the first has the replicas; a mesh of one axis is a `process_group`.

    Every rank calls the same modules in the same order, forward and backward. Optimizers that need whole parameters are
    refused. `dist.clip_grad_norm_` takes rows into account; inside `dist.whole_parameters(module)` all are whole.
    """
    if mesh is not None:
        process_group, replicas = _groups_of(mesh, process_group, replicas)
    group = process_group or world()
    for name, each in (("dtype", dtype), ("reduce_dtype", reduce_dtype)):
        if each is not None and not each.is_floating_point:
            raise TypeError(
                f"fully_shard: expected {name} to be a floating-point dtype, got {each}"
            )
    if isinstance(module, FullyShardedModule):
        raise ValueError(
            f"fully_shard: expected a module that is not sharded, got {type(module).__name__}"
        )
    slots: dict[int, _Slot] = {}
    with tenon.no_grad():
        for path, owner in module.named_modules():
            for name, value in list(vars(owner).items()):
                if not isinstance(value, Parameter) or isinstance(value, ShardedParameter):
                    continue
                if place_of(value) is not None:
                    raise NotImplementedError(
                        f"fully_shard: expected parameters that all ranks have, got {f'{path}.{name}'.strip('.')} of an "
                        "expert, which is divided over ranks already; shard the modules around ExpertParallel"
                    )
                if id(value) not in slots:
                    said = (tuple(value.shape), value.dtype.name, _part_text(value, group))
                    for ranks in (group,) if replicas is None else (replicas, group):
                        _agree((f"{path}.{name}".strip("."), *said), ranks)
                        ranks.broadcast(local_of(value))
                    slots[id(value)] = _Slot(value, group, replicas)
                slots[id(value)].owners.append((weakref.ref(owner), name))
    if not slots and not units_of(module):
        raise ValueError("fully_shard: expected a module with parameters, got none")
    for slot in slots.values():
        slot.put(slot.shard)
    kind = type(module)
    taken = list(slots.values())
    module._unit = Unit(
        kind.__name__, taken, group, reshard_after_forward, dtype, reduce_dtype, replicas
    )
    module.__class__ = type(kind.__name__, (FullyShardedModule, kind), {})
    return module


def _groups_of(
    mesh: DeviceMesh, process_group: ProcessGroup | None, replicas: ProcessGroup | None
) -> tuple[ProcessGroup, ProcessGroup | None]:
    if process_group is not None or replicas is not None:
        raise ValueError("fully_shard: expected a mesh or groups, got both")
    if mesh.ndim > 2:
        raise ValueError(
            f"fully_shard: expected a mesh of one axis, or of two, the replicas and the ranks that rows are divided over, got "
            f"one of {mesh.ndim}; give those axes, such as mesh['replicas', 'shards']"
        )
    return mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None


def _part_text(param: Tensor, group: ProcessGroup) -> str:
    """Of a sharded tensor, of which all ranks of the group have to have the same part."""
    if not isinstance(param, DTensor):
        return ""
    shared = sorted(set(param.device_mesh.ranks) & set(group.ranks))
    if len(shared) > 1 or any(placement.is_partial() for placement in param.placements):
        raise ValueError(
            f"fully_shard: expected a process_group whose ranks have the same part of a sharded parameter of shape "
            f"{tuple(param.shape)} in {param.placements}, such as mesh.get_group('dp') beside mesh['tp'], got one of ranks "
            f"{list(group.ranks)}, of which {shared} are on the parameter's mesh"
        )
    offset, shape = part_of(param)
    return f"{param.placements}, here {shape} from {offset}"


def _agree(own: tuple, group: ProcessGroup) -> None:
    for rank, theirs in enumerate(all_gather_object(own, group)):
        if theirs != own:
            raise ValueError(
                f"fully_shard: expected the same parameters on all ranks, got {own} on rank {group.rank} and {theirs} on "
                f"rank {rank}"
            )


def units_of(module: Module) -> list[Unit]:
    return [each._unit for each in module.modules() if isinstance(each, FullyShardedModule)]


@contextlib.contextmanager
def whole_parameters(module: Module) -> Iterator[None]:
    """Inside, the module and all below have whole parameters, for reading: to evaluate, to export. Every rank calls it."""
    with contextlib.ExitStack() as stack, tenon.no_grad():
        for unit in units_of(module):
            stack.enter_context(unit.whole(is_in_pass=False))
        yield
