# SPDX-License-Identifier: Apache-2.0
"""What a part of a model costs in given placements: it runs, forward and backward, on a rank that is not there."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.nn import Module, Parameter

from ... import reshards
from ...fake import fake
from ...mesh import DeviceMesh, init_device_mesh, number_of
from ...placements import Placement, Replicate, part_of_whole, words_of
from ..events import Mark, Transfer
from ..machine import Machine
from ..prediction import tasks_of
from ..simulator import simulate
from ..tracing import Tracer
from .choices import Placements, Style

# Bytes that an update reads and writes for each of a parameter: itself twice, its gradient, two of state twice.
_UPDATE = 7


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of a part in a style, forward, backward and update."""

    style: Style
    out: Placements  # where its result is
    seconds: float
    sent: int
    kept: int  # bytes of parameters, gradients and state
    saved: int  # bytes that it keeps from forward to backward


@dataclasses.dataclass(frozen=True)
class Like:
    """A tensor without data."""

    shape: tuple[int, ...]
    dtype: Any

    @staticmethod
    def of(tensor: Tensor) -> Like:
        return Like(tuple(tensor.shape), tensor.dtype)


class Ranks:
    """Ranks of a mesh that are not there. `states` is how many tensors of state an optimizer has for a parameter."""

    def __init__(self, mesh: DeviceMesh, tracer: Tracer, machine: Machine, states: int) -> None:
        self.mesh, self.machine, self.states = mesh, machine, states
        self._tracer = tracer
        names = mesh.mesh_dim_names or tuple(f"axis {axis}" for axis in range(mesh.ndim))
        self._names = {id(mesh.get_group(a)._host): names[a] for a in range(mesh.ndim)}
        self._moves: dict[Any, tuple[float, int]] = {}
        self.runs = 0

    def made(self, like: Like, at: Sequence[Placement], requires_grad: bool = False) -> Tensor:
        """A sharded tensor in these placements, which may be those of a sum."""
        coordinates = self.mesh.get_coordinate()
        _, shape = part_of_whole(like.shape, at, self.mesh.shape, coordinates)
        local = tenon.empty(list(shape), dtype=like.dtype, device="meta")
        words = words_of(at, self.mesh.ndim, len(like.shape))
        made = _core.shard_tensor(number_of(self.mesh), list(like.shape), local, words)
        return made.requires_grad_(requires_grad)

    def local_bytes(self, like: Like, at: Placements) -> int:
        _, shape = part_of_whole(like.shape, at, self.mesh.shape, self.mesh.get_coordinate())
        return math.prod(shape) * int(like.dtype.itemsize)

    def part(
        self, part: Module, given: Like, at: Placements, style: Style, needs_gradient: bool
    ) -> Cost:
        """The part, of an input in placements `at`."""
        params = dict(style)
        kept = 0
        update = 0.0
        made: dict[str, Tensor] = {}
        for name, parameter in part.named_parameters():
            like = Like.of(parameter)
            own = self.made(like, params[name], parameter.requires_grad)
            if parameter.requires_grad:
                own.register_hook(_placed(params[name]))
            made[name] = own
            size = self.local_bytes(like, params[name])
            kept += size * (2 + self.states)
            update += _UPDATE * size / self.machine.bandwidth
        x = self.made(given, at, needs_gradient and given.dtype.is_floating_point)
        out: list[Placements] = []

        def run() -> None:
            with replaced(part, made):
                y = part(x)
            if not isinstance(y, Tensor):
                raise NotImplementedError(
                    f"auto: expected modules of a chain that return one tensor, got {type(y).__name__} of "
                    f"{type(part).__name__}; give the whole as one module"
                )
            if y.layout != "sharded":
                out.append((Replicate(),) * self.mesh.ndim)
                return
            out.append(tuple(y.placements))
            self._tracer.mark("saved")
            if y.requires_grad:
                y.backward(self.made(Like.of(y), _of_gradient(out[0])))
            if x.grad is not None:
                x.grad.redistribute(_of_gradient(at))

        seconds, sent, saved = self._run(run)
        return Cost(style, out[0], seconds + update, sent, kept, saved)

    def loss(
        self, loss: Callable[..., Tensor], y: Like, at: Placements, target: Like | None
    ) -> Cost:
        whole = (Replicate(),) * self.mesh.ndim
        x = self.made(y, at, True)
        more = [] if target is None else [self.made(target, whole)]

        def run() -> None:
            loss(x, *more).backward()
            if x.grad is not None:
                x.grad.redistribute(_of_gradient(at))

        seconds, sent, saved = self._run(run)
        return Cost((), whole, seconds, sent, 0, saved)

    def move(self, like: Like, source: Placements, target: Placements) -> tuple[float, int]:
        """Seconds and bytes of a redistribution between two modules, forward and backward."""
        key = (like, source, target)
        if source == target:
            return 0.0, 0
        if key not in self._moves:

            def run() -> None:
                self.made(like, source).redistribute(target)
                if like.dtype.is_floating_point:
                    self.made(like, _of_gradient(target)).redistribute(_of_gradient(source))

            self._moves[key] = self._run(run)[:2]
        return self._moves[key]

    def _run(self, function: Callable[[], None]) -> tuple[float, int, int]:
        self.runs += 1
        before = tenon.memory.stats("meta")["current"]
        with self._tracer.recording():
            function()
        events = self._tracer.named(self._names)
        seconds = simulate({0: tasks_of(events, self.machine, 0)}).end
        marks = [each.current for each in events if isinstance(each, Mark)]
        sent = sum(each.sent for each in events if isinstance(each, Transfer))
        return seconds, sent, max(marks[0] - before, 0) if marks else 0


def _placed(at: Placements) -> Callable[[Tensor], Tensor]:
    return lambda grad: grad.redistribute(list(at))


def _of_gradient(at: Sequence[Placement]) -> Placements:
    return tuple(Replicate() if placement.is_partial() else placement for placement in at)


@contextlib.contextmanager
def ranks_like(
    shape: Sequence[int], names: Sequence[str] | None, machine: Machine, states: int
) -> Iterator[Ranks]:
    """Ranks of such a mesh. Operators without a rule do not warn, as their cost says what they need."""
    tracer = Tracer("meta")
    policy = reshards.reshard_policy("allow")
    try:
        with fake(math.prod(shape), 0, tracer), tenon.device("meta"), reshards.apart():
            yield Ranks(
                init_device_mesh("cpu", shape, mesh_dim_names=names), tracer, machine, states
            )
    finally:
        reshards.reshard_policy(policy)


@contextlib.contextmanager
def replaced(module: Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Modules see other tensors in the place of their parameters, and of their buffers ones without data. `tensors` has the
    parameters by their names; one that several modules have has one name, and is replaced in all of them."""
    before: list[tuple[Module, str, Tensor]] = []
    made = {id(parameter): tensors[name] for name, parameter in module.named_parameters()}
    for _, each in module.named_modules():
        for name, value in list(vars(each).items()):
            if not isinstance(value, Tensor):
                continue
            before.append((each, name, value))
            if isinstance(value, Parameter):
                vars(each)[name] = made[id(value)]
            else:
                vars(each)[name] = tenon.empty(list(value.shape), dtype=value.dtype, device="meta")
    try:
        yield
    finally:
        for each, name, value in before:
            vars(each)[name] = value
