# SPDX-License-Identifier: Apache-2.0
"""Runs a step once, as one rank of a job whose other ranks are not there, and writes down what it does."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon.ops._flop_formulas import UNKNOWN, evaluate, formula_of

from ..call_site import call_site
from ..fake import CallListener, FakeHost, fake
from ..host_group import NAMES
from ..world import _thread_world, world
from .events import Compute, Event, Mark, StepTrace, TensorKind, Transfer, Wait

WARM_UP = 2  # steps in which state is made and orders are learnt


def trace_step(
    build: Callable[[], Callable[[], Any]],
    ranks: int,
    rank: int = 0,
    *,
    device: str = "meta",
    warm_up: int = WARM_UP,
) -> StepTrace:
    """What a step of training does on rank `rank` of `ranks`, none of which has to be there.

        def build():                                     # everything that each rank does before training
            model = dist.DistributedDataParallel(nn.Linear(1024, 1024))
            optimizer = optim.AdamW(model.parameters())
            def step():
                optimizer.zero_grad()
                model(tenon.ones([64, 1024])).sum().backward()
                optimizer.step()
            return step

        print(dist.trace_step(build, ranks=1024))        # bytes by call and group, FLOPs, memory

    `build` runs in `dist.fake(ranks, rank)`, and tensors that do not name a device are made on `device`: on "meta" they have
    shapes and dtypes and no data, so that models of any size are traced in milliseconds; what reads elements there is an
    error. On "cpu" the step computes, and each operator call is the one that training makes, where composites have kernels of
    their own. The step runs `warm_up` times before it is traced, as the first ones make state and learn orders.
    """
    return off_rank(lambda: _traced(build, ranks, rank, device, warm_up))


def off_rank(function: Callable[[], Any]) -> Any:
    """function(), in a thread of its own if this one is a rank, as no thread is one of two jobs."""
    if getattr(_thread_world, "group", None) is None:
        return function()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def _traced(
    build: Callable[[], Callable[[], Any]], ranks: int, rank: int, device: str, warm_up: int
) -> StepTrace:
    tracer = Tracer(device)
    with _older_objects_kept(), fake(ranks, rank, tracer), tenon.device(device):
        before = _in_use(device)
        step = build()
        if not callable(step):
            raise TypeError(
                f"trace_step: expected build() to return the step, a function without arguments, got {type(step).__name__}"
            )
        for _ in range(warm_up):
            step()
        gc.collect()
        kept = _in_use(device)
        tenon.memory.reset_peak(device)
        with tracer.recording():
            step()
        peak = tenon.memory.stats(device)["peak"]
        names = _names_of_groups()
        events = tracer.named(names)
        del step
    return StepTrace(ranks, rank, events, max(kept - before, 0), max(peak - before, 0))


@contextlib.contextmanager
def _older_objects_kept() -> Iterator[None]:
    """Objects that are there stay, unreachable ones too: their memory counts before and behind, and collections of
    garbage do not look at them, which takes seconds in a large process. A caller's own gc.freeze() is left as it is."""
    if gc.get_freeze_count() > 0:
        gc.collect()
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def mark(label: str) -> None:
    """Name a place in the step that is being traced; elsewhere nothing happens."""
    tracer = getattr(_thread_world, "tracer", None)
    if tracer is not None:
        tracer.mark(label)


def _in_use(device: str) -> int:
    return json.loads(_core.memory_stats(device, False))["current"]


def _names_of_groups() -> dict[int, str]:
    """By the host of a group: axes of meshes have the names that the program gave them."""
    names = {id(world()._host): "world"}
    for mesh in getattr(_thread_world, "meshes", ()):
        for axis in range(mesh.ndim):
            name = mesh.mesh_dim_names[axis] if mesh.mesh_dim_names else f"axis {axis}"
            names[id(mesh.get_group(axis)._host)] = name
    return names


class Tracer(CallListener):
    """Of this thread, and of the groups of one `fake`."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._events: list[Event] = []
        self._hosts: dict[int, FakeHost] = {}  # of which transfers were seen, which keep their ids
        self._numbers = itertools.count(1)
        self._pauses = 1

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        observer = _core._CallObserver(self._see, True)
        self._events, self._pauses = [], 0
        before = getattr(_thread_world, "tracer", None)
        _thread_world.tracer = self
        observer.enter()
        try:
            yield
        finally:
            self._pauses = 1
            _thread_world.tracer = before
            observer.exit()

    def mark(self, label: str) -> None:
        self._events.append(Mark(label, _in_use(self._device)))

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1

    def hear(
        self, host: FakeHost, size: int, kind: int, sent: int, received: int, is_async: bool
    ) -> Callable[[], None] | None:
        if self._pauses:
            return None
        self._hosts[id(host)] = host
        number = next(self._numbers) if is_async else 0
        group = str(id(host))
        self._events.append(Transfer(NAMES[kind], group, size, sent, received, number, call_site()))
        return (lambda: self._wait(number)) if is_async else None

    def named(self, names: dict[int, str]) -> tuple[Event, ...]:
        """The events, with what groups are called."""
        known = {str(key): name for key, name in names.items()}
        return tuple(
            Transfer(
                each.call,
                known.get(each.group, f"of {each.size}"),
                each.size,
                each.sent,
                each.received,
                each.number,
                each.line,
            )
            if isinstance(each, Transfer)
            else each
            for each in self._events
        )

    def _wait(self, number: int) -> None:
        if not self._pauses:
            self._events.append(Wait(number))

    def _see(
        self, name: str, arguments: dict[str, Any], results: list[Any], has_parts: bool
    ) -> None:
        if self._pauses or has_parts:  # the parts were seen
            return
        tensors = [*_tensors_in(arguments.values()), *_tensors_in(results)]
        self._events.append(
            Compute(
                name,
                tuple((key, _kind_of(value)) for key, value in arguments.items()),
                _flops(name, arguments, results, tensors),
                sum(tensor.nbytes for tensor in tensors),
                _in_use(self._device),
            )
        )


def _flops(name: str, arguments: dict[str, Any], results: list[Any], tensors: list[Tensor]) -> int:
    """By the operator's definition; where it says nothing, one for each element of the largest tensor. What the definition
    says cannot be known (factorizations, Fourier transforms) counts likewise."""
    formula = formula_of(name)
    if formula is None or formula == UNKNOWN:
        return max((tensor.numel() for tensor in tensors), default=0)
    values = dict(zip(_core.operator_results(name), results, strict=False))
    return evaluate(formula, {**arguments, **values})


def _tensors_in(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors_in(value)


def _kind_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        strides = () if value.is_contiguous() else tuple(value.strides)
        return TensorKind(tuple(value.shape), value.dtype.name, strides)
    if isinstance(value, list | tuple):
        return tuple(map(_kind_of, value))
    return value if isinstance(value, int | float | str | bool | type(None)) else str(value)
