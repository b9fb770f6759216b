# SPDX-License-Identifier: Apache-2.0
"""Placements of a model's parameters and of what its modules hand on, chosen by what a step costs."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import Module
from tenon.optim import SGD, AdamW

from ... import reshards
from ...dtensor import DTensor, distribute_tensor
from ...mesh import DeviceMesh, init_device_mesh
from ...placements import Placement
from ...tensor_parallel import sharded_parameter
from ..events import StepTrace
from ..machine import Machine
from ..prediction import Prediction, predict
from ..tracing import off_rank, trace_step
from .choices import Placements
from .costs import Like, ranks_like, replaced
from .search import Search, Solution, chain_of

_BISECTIONS = 24


@dataclasses.dataclass
class Plan:
    """What dist.auto has chosen. `prediction` and `trace` are those of a whole step in these placements, on a rank that is
    not there; `rows` are the redistributions of that step."""

    mesh_shape: tuple[int, ...]
    mesh_dim_names: tuple[str, ...] | None
    inputs: Placements
    parameters: dict[str, Placements]
    boundaries: dict[str, Placements]  # of modules whose results are brought elsewhere
    solution: Solution
    alternatives: dict[str, str]  # by module: the next best style, and what it costs
    prediction: Prediction
    trace: StepTrace
    rows: list[dict[str, Any]]
    runs: int  # of parts, that the search took

    def apply(self, model: Module, mesh: DeviceMesh) -> Module:
        """The model with its parameters in the plan's placements, on a mesh like that of the plan. Make the optimizer behind
        it. Every rank calls the model with the whole batch, of which it takes its part, or with a sharded tensor."""
        if tuple(mesh.shape) != self.mesh_shape:
            raise ValueError(
                f"Plan.apply: expected a mesh of shape {self.mesh_shape}, got {tuple(mesh.shape)}"
            )
        names = [name for name, _ in model.named_parameters()]
        if set(names) != set(self.parameters):
            other = sorted(set(names) ^ set(self.parameters))
            raise ValueError(
                f"Plan.apply: expected the model of the plan, got one that differs in {', '.join(other[:4])}"
            )
        # A parameter that several modules have stays one.
        made = {
            id(parameter): sharded_parameter(parameter, mesh, self.parameters[name])
            for name, parameter in model.named_parameters()
        }
        for path, module in model.named_modules():
            for name, value in list(vars(module).items()):
                if id(value) in made:
                    setattr(module, name, made[id(value)])
            if path in self.boundaries:
                module.register_forward_hook(_moves_to(self.boundaries[path]))
        model.register_forward_pre_hook(_distributes(mesh, self.inputs))
        return model

    def explain(self) -> str:
        """Each redistribution of a step: operator, line of the program, placements, bytes; and of each module what it would
        have cost in the next best way."""
        lines = []
        for row in sorted(self.rows, key=lambda each: -each["bytes"]):
            rule = "" if row["has_rule"] else "  (no rule: whole on every rank)"
            lines.append(
                f"{row['bytes']:>14,} bytes {row['calls']:>4} x  {row['operator']:<16} {row['from']} -> {row['to']}  "
                f"{row['line']}{rule}"
            )
        for step in self.solution.steps:
            if step.move[1]:
                lines.append(
                    f"{step.move[1]:>14,} bytes    1 x  behind {step.name}: {_text(step.cost.out)} -> {_text(step.target)}"
                )
        if not lines:
            lines.append("nothing is moved between operators")
        lines.append("otherwise:")
        lines += [f"  {name}: {text}" for name, text in self.alternatives.items()]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Placements and figures, for people and other programs."""
        return json.dumps(
            {
                "mesh": list(self.mesh_shape),
                "axes": self.mesh_dim_names,
                "inputs": _text(self.inputs),
                "parameters": {name: _text(at) for name, at in self.parameters.items()},
                "boundaries": {name: _text(at) for name, at in self.boundaries.items()},
                "seconds": self.prediction.seconds,
                "bytes_sent": self.trace.bytes_sent,
                "peak": self.trace.peak,
                "kept": self.trace.kept,
            },
            indent=1,
        )

    def __repr__(self) -> str:
        rows = [
            f"a step takes {1e3 * self.prediction.seconds:.3f} ms, sends {self.trace.bytes_sent:,} bytes, keeps "
            f"{self.trace.kept:,} and has {self.trace.peak:,} bytes in use at most; {self.runs} runs of parts",
            f"inputs: {_text(self.inputs)}",
        ]
        rows += [f"{name}: {_text(at)}" for name, at in self.parameters.items()]
        rows += [f"behind {name}: {_text(at)}" for name, at in self.boundaries.items()]
        return "\n".join(rows)


def auto(
    model: Module,
    mesh: DeviceMesh | Sequence[int],
    example: Tensor,
    *,
    loss: Callable[..., Tensor] | None = None,
    target: Tensor | None = None,
    machine: Machine,
    memory: int | None = None,
    placements: Mapping[str, Sequence[Placement]] | None = None,
    inputs: Sequence[Placement] | None = None,
    optimizer_states: int = 2,
    beam: int = 4,
    notify: Callable[[str, int], Any] | None = None,
) -> Plan:
    """Choose placements of the parameters, the input and what modules hand on, such that a step of `loss(model(x), target)`,
    its backward pass and an update with `optimizer_states` tensors of state are predicted to take the least time on
    `machine`, and `memory` bytes at most.

        plan = dist.auto(model, mesh, x, loss=cross_entropy, target=y, machine=dist.calibrate(mesh))
        print(plan), print(plan.explain())
        model = plan.apply(model, mesh)

    A Sequential (of Sequentials) is a chain: dynamic programming over where its modules hand on what. In a module with many
    choices a `beam` of them is followed, and equal modules are solved once. Choices are what the operators' rules allow: each
    weight whole or cut along one of its first two axes by each axis of the mesh. `placements` are constraints by patterns of
    parameters' names, `inputs` is one for the input. What a choice costs is no estimate of formulas: the module runs, forward
    and backward, through the rules of sharded tensors on ranks that are not there. `mesh` may be its shape. Of `example` and
    `target` shapes and dtypes count. Nothing is changed but by `apply`.
    """
    shape = tuple(mesh.shape) if isinstance(mesh, DeviceMesh) else tuple(mesh)
    names = mesh.mesh_dim_names if isinstance(mesh, DeviceMesh) else None
    sharded = [name for name, p in model.named_parameters() if isinstance(p, DTensor)]
    if sharded:
        raise ValueError(
            f"auto: expected a model with plain parameters, got {sharded[0]} sharded; name what is decided as placements="
        )
    known = [name for name, _ in model.named_parameters()]
    for pattern in placements or {}:
        if not fnmatch.filter(known, pattern):
            raise ValueError(
                f"auto: expected parameters that {pattern!r} names, got none; there are {', '.join(known)}"
            )
    _check(placements or {}, inputs, len(shape), optimizer_states, beam)
    given, wanted = Like.of(example), None if target is None else Like.of(target)

    def search() -> Plan:
        with ranks_like(shape, names, machine, optimizer_states) as ranks:
            found = Search(
                ranks,
                chain_of(model, given),
                loss,
                wanted,
                placements or {},
                inputs,
                beam,
                notify or (lambda name, runs: None),
            )
            solution = _within(found, memory)
            alternatives = _alternatives(found, solution)
        step = _Step(model, given, loss, wanted, shape, names, optimizer_states)
        return plan_of(step, solution, alternatives, machine, ranks.runs)

    return off_rank(search)


def plan_of(
    step: _Step, solution: Solution, alternatives: dict[str, str], machine: Machine, runs: int
) -> Plan:
    """A solution as a plan: the whole step runs once in its placements."""
    parameters, boundaries = {}, {}
    for each in solution.steps:
        for name, at in each.cost.style:
            parameters[f"{each.name}.{name}".strip(".")] = at
        if each.cost.out != each.target:
            boundaries[each.name] = each.target
    inputs = solution.steps[0].given
    trace, rows = step.traced(inputs, parameters, boundaries)
    return Plan(
        step.shape,
        step.names,
        inputs,
        parameters,
        boundaries,
        solution,
        alternatives,
        predict(trace, machine),
        trace,
        rows,
        runs,
    )


@dataclasses.dataclass
class _Step:
    """A whole step of training, whose placements are open."""

    model: Module
    given: Like
    loss: Callable[..., Tensor] | None
    target: Like | None
    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    states: int

    def traced(
        self,
        inputs: Placements,
        parameters: Mapping[str, Placements],
        boundaries: Mapping[str, Placements],
    ) -> tuple[StepTrace, list[dict[str, Any]]]:
        rows: list[dict[str, Any]] = []
        handles: list[Any] = []

        def build() -> Callable[[], None]:
            mesh = init_device_mesh("cpu", self.shape, mesh_dim_names=self.names)
            made = {
                name: sharded_parameter(_empty(Like.of(p), p), mesh, parameters[name])
                for name, p in self.model.named_parameters()
            }
            x = distribute_tensor(_empty(self.given), mesh, inputs, src_data_rank=None)
            more = [] if self.target is None else [_empty(self.target)]
            modules = dict(self.model.named_modules())
            for name, at in boundaries.items():
                handles.append(modules[name].register_forward_hook(_moves_to(at)))
            trained = [p for p in made.values() if p.requires_grad]
            update = _optimizer(trained, self.states) if trained else None

            def step() -> None:
                reshards.reshard_report(reset=True)
                for p in trained:
                    p.grad = None
                with replaced(self.model, made):
                    y = self.model(x)
                value = y.sum() if self.loss is None else self.loss(y, *more)
                if value.requires_grad:
                    value.backward()
                if update is not None:
                    update.step()
                rows[:] = reshards.reshard_report()

            return step

        policy = reshards.reshard_policy("allow")
        try:
            with reshards.apart():
                trace = trace_step(build, math.prod(self.shape), warm_up=1)
        finally:
            reshards.reshard_policy(policy)
            for handle in handles:
                handle.remove()
        return trace, rows


def _empty(like: Like, parameter: Tensor | None = None) -> Tensor:
    made = tenon.empty(list(like.shape), dtype=like.dtype, device="meta")
    return made if parameter is None else made.requires_grad_(parameter.requires_grad)


def _optimizer(parameters: Sequence[Tensor], states: int) -> Any:
    if states == 2:
        return AdamW(parameters, lr=1e-3)
    return SGD(parameters, lr=1e-3, momentum=0.9 if states else 0.0)


def _check(
    placements: Mapping[str, Sequence[Placement]],
    inputs: Sequence[Placement] | None,
    axes: int,
    optimizer_states: int,
    beam: int,
) -> None:
    given = {f"placements[{pattern!r}]": at for pattern, at in placements.items()}
    if inputs is not None:
        given["inputs"] = inputs
    for name, at in given.items():
        if len(at) != axes:
            raise ValueError(
                f"auto: expected {name} to have a placement for each of the mesh's {axes} axes, got {list(at)}"
            )
    if optimizer_states not in (0, 1, 2):
        raise ValueError(
            f"auto: expected optimizer_states=0 (SGD), 1 (momentum) or 2 (Adam), got {optimizer_states}"
        )
    if beam < 1:
        raise ValueError(f"auto: expected a beam of 1 or more, got {beam}")


def _within(search: Search, memory: int | None) -> Solution:
    """The cheapest that fits: bytes get a price until they do."""
    found = search.solve()
    if memory is None or found.memory <= memory:
        return found
    low, high = 0.0, 1e-12
    best = search.solve(high)
    while best.memory > memory and high < 1.0:
        low, high = high, high * 16
        best = search.solve(high)
    if best.memory > memory:
        raise ValueError(
            f"auto: expected placements that take {memory:,} bytes of a rank at most, got {best.memory:,} in those that take "
            "least; use more ranks, a smaller batch, or tenon.utils.checkpoint in the model"
        )
    for _ in range(_BISECTIONS):
        middle = (low * high) ** 0.5 if low else high / 16
        found = search.solve(middle)
        if found.memory <= memory:
            best, high = min(best, found, key=lambda each: each.seconds), middle
        else:
            low = middle
        if high <= low * 1.1:
            break
    return best


def _alternatives(search: Search, solution: Solution) -> dict[str, str]:
    """Of each module, the next best style from and to where its neighbours are."""
    found = {}
    for link, step in zip(search.links, solution.steps, strict=True):
        here = step.cost.seconds + step.move[0]
        others = []
        for cost in search.options(link, step.given):
            if cost.style != step.cost.style:
                move = search.ranks.move(link.result, cost.out, step.target)
                others.append((cost.seconds + move[0] - here, cost.sent + move[1], cost.style))
        if others:
            more, sent, style = min(others, key=lambda each: each[0])
            cuts = [f"{name} {_text(at)}" for name, at in style if any(p.is_shard() for p in at)]
            found[step.name or type(link.module).__name__] = (
                f"{', '.join(cuts) or 'all whole'}: {more / solution.seconds:+.1%} of the step, {sent:,} bytes instead of "
                f"{step.cost.sent + step.move[1]:,}"
            )
    return found


def _moves_to(at: Placements) -> Callable[[Module, Any, Tensor], Tensor]:
    def move(module: Module, given: Any, result: Tensor) -> Tensor:
        return result.redistribute(list(at)) if isinstance(result, DTensor) else result

    return move


def _distributes(mesh: DeviceMesh, at: Placements) -> Callable[[Module, tuple], tuple]:
    def distribute(module: Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            distribute_tensor(x, mesh, list(at), src_data_rank=None)
            if isinstance(x, Tensor) and not isinstance(x, DTensor)
            else x
            for x in given
        )

    return distribute


def _text(at: Sequence[Placement]) -> str:
    return ", ".join(map(repr, at))
