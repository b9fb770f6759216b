# SPDX-License-Identifier: Apache-2.0
"""Measures a machine, on all ranks of a job at once, as they share processors, memory and links."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tenon
from tenon import Tensor, _core

from ..group import ProcessGroup
from ..mesh import DeviceMesh
from ..world import is_initialized, world
from .events import StepTrace, TensorKind, kinds_of
from .machine import Link, Machine, signature_text

_SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 20)  # bytes of a rank's tensor in calls that are measured
_PRODUCT, _ROWS = 512, 1 << 22
_PATIENCE = 0.3  # seconds for one thing, once it has run three times


def calibrate(
    mesh: DeviceMesh | None = None,
    *,
    traces: StepTrace | Iterable[StepTrace] = (),
    sizes: Sequence[int] = _SIZES,
    patience: float = _PATIENCE,
) -> Machine:
    """Measure products, the bandwidth of memory, what a call costs beside its kernel, and of each axis of the mesh what a
    call of its group takes: alpha, and beta for each byte. Every rank of the job calls this, and all get the same numbers,
    those of the slowest. Without a mesh the group of all ranks is measured as "world", if there is one.

    `traces` are steps (dist.trace_step(..., device="cpu")) whose operator calls are measured one by one, on tensors of their
    shapes: a prediction of these, and of steps that are made of the same calls, does not depend on peak rates.

    Of several runs the fastest counts, as other work of a machine only adds.
    """
    group = world() if is_initialized() else None
    meter = _Meter(group, patience)
    a = tenon.full([_PRODUCT, _PRODUCT], 0.5, device="cpu")
    x = tenon.full([_ROWS], 0.5, device="cpu")
    small = tenon.full([4], 0.5, device="cpu").requires_grad_()
    with tenon.no_grad():
        product = meter.seconds(lambda: a @ a)
        copied = meter.seconds(lambda: x + x)
    chained = meter.seconds(lambda: _chain(small)) / _CHAIN
    machine = Machine(
        flops=2 * _PRODUCT**3 / product,
        bandwidth=3 * x.nbytes / copied,
        overhead=chained,
        notes={"tenon": tenon.__version__, "ranks": 1 if group is None else group.size},
    )
    if mesh is not None:
        for axis in range(mesh.ndim):
            name = mesh.mesh_dim_names[axis] if mesh.mesh_dim_names else f"axis {axis}"
            if mesh.shape[axis] > 1:
                machine.links[name] = _measure_link(meter, mesh.get_group(axis), sizes)
    elif group is not None and group.size > 1:
        machine.links["world"] = _measure_link(meter, group, sizes)
    given = [traces] if isinstance(traces, StepTrace) else list(traces)
    for trace in given:
        _measure_kernels(machine, meter, trace)
    return machine


_CHAIN = 64  # operator calls of `_chain`, forward and backward


def _chain(x: Tensor) -> None:
    y = x
    for _ in range(_CHAIN // 2):
        y = -y
    tenon.autograd.grad([y], [x], [y.detach()])


class _Meter:
    """Times of the slowest rank. Ranks that measure start together, and run a thing equally often."""

    def __init__(self, group: ProcessGroup | None, patience: float) -> None:
        self.group, self.patience = group, patience

    def seconds(self, function: Callable[[], Any]) -> float:
        first = self._agreed(self._once(function, 1))
        times = max(1, min(100, int(self.patience / 5 / max(first, 1e-7))))
        return self._agreed(min(self._once(function, times) for _ in range(5)))

    def _once(self, function: Callable[[], Any], times: int) -> float:
        if self.group is not None:
            self.group.barrier()
        start = time.perf_counter()
        for _ in range(times):
            function()
        return (time.perf_counter() - start) / times

    def _agreed(self, seconds: float) -> float:
        if self.group is None or self.group.size == 1:
            return seconds
        told = tenon.tensor([seconds], dtype=tenon.float64, device="cpu")
        return float(self.group.all_reduce(told, "max").item())


def _measure_link(meter: _Meter, group: ProcessGroup, sizes: Sequence[int]) -> Link:
    """A line through the times of each call, by bytes that a rank sends."""
    ranks = group.size
    tensors = [
        tenon.zeros([max(size // 4 // ranks, 1) * ranks], dtype=tenon.float32, device="cpu")
        for size in sizes
    ]
    before = group.counters()

    def sent(function: Callable[[], Any]) -> int:
        nonlocal before
        function()
        after = group.counters()
        found = max(after[key] - before[key] for key in ("bytes_sent", "bytes_received"))
        before = after
        return found

    calls: dict[str, Callable[[Tensor], Any]] = {
        "all_reduce": group.all_reduce,
        "all_gather": group.all_gather,
        "reduce_scatter": group.reduce_scatter,
        "all_to_all": group.all_to_all,
        "broadcast": group.broadcast,
    }
    lines: dict[str, tuple[float, float]] = {}
    with tenon.no_grad():
        for name, call in calls.items():
            points = []
            for x in tensors:
                payload = sent(lambda call=call, x=x: call(x))  # type: ignore[misc]
                seconds = meter.seconds(lambda call=call, x=x: call(x))  # type: ignore[misc]
                points.append((payload, seconds))
                before = group.counters()
            alpha, beta = _line(points)
            lines[name] = (alpha / (ranks - 1), beta)
    alpha, beta = lines["all_to_all"]
    return Link(ranks, alpha, beta, lines)


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """alpha and beta of the line whose relative differences from the points are least, neither below 0."""
    weights = [1 / max(seconds, 1e-9) ** 2 for _, seconds in points]
    w = sum(weights)
    x = sum(k * p for k, (p, _) in zip(weights, points, strict=True)) / w
    y = sum(k * s for k, (_, s) in zip(weights, points, strict=True)) / w
    spread = sum(k * (p - x) ** 2 for k, (p, _) in zip(weights, points, strict=True))
    if spread == 0:
        return max(y, 0.0), 0.0
    beta = sum(k * (p - x) * (s - y) for k, (p, s) in zip(weights, points, strict=True)) / spread
    beta = max(beta, 0.0)
    alpha = y - beta * x
    if alpha < 0:
        squares = sum(k * p * p for k, (p, _) in zip(weights, points, strict=True))
        beta = sum(k * p * s for k, (p, s) in zip(weights, points, strict=True)) / squares
        alpha = 0.0
    return alpha, beta


def _measure_kernels(machine: Machine, meter: _Meter, trace: StepTrace) -> None:
    for event in kinds_of(trace.events).values():
        text = signature_text(event)
        if text in machine.kernels:
            continue
        arguments = [_made(value) for _, value in event.arguments]
        operator = _core.operator(event.operator)
        try:
            with tenon.no_grad():
                operator(*arguments)
        except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
            continue  # arguments that texts do not say: its time follows from FLOPs and bytes
        with tenon.no_grad():
            machine.kernels[text] = meter.seconds(lambda o=operator, a=arguments: o(*a))  # type: ignore[misc]


def _made(value: Any) -> Any:
    """A tensor of that kind, of numbers that no kernel is slow with; indices are 0."""
    if isinstance(value, TensorKind):
        dtype = getattr(tenon, value.dtype)
        fill = 0.5 if dtype.is_floating_point else 0
        if not value.strides or 0 in value.shape:
            return tenon.full(list(value.shape), fill, dtype=dtype, device="cpu")
        reach = 1 + sum((n - 1) * abs(s) for n, s in zip(value.shape, value.strides, strict=True))
        flat = tenon.full([reach], fill, dtype=dtype, device="cpu")
        return flat.as_strided(list(value.shape), list(value.strides))
    if isinstance(value, tuple):
        return [_made(each) for each in value]
    return value
