# SPDX-License-Identifier: Apache-2.0
"""All ways of dividing a step, simulated, the fastest first."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...pipelines.schedule import BACKWARD, FORWARD, WEIGHTS, Action, Schedule
from ...pipelines.schedules import schedule_of
from ..events import Mark, StepTrace
from ..machine import Machine
from ..prediction import of_timeline, predict, tasks_of, tasks_of_schedule
from ..simulator import Task, Timeline, Work, simulate
from ..tracing import trace_step
from .recipe import Config, Recipe
from .space import configs_of
from .steps import build_stages, build_step

Notify = Callable[[int, int, Config], Any]


@dataclasses.dataclass
class Candidate:
    """A way of dividing the step: predicted, or refused with a reason."""

    config: Config
    reason: str = ""
    seconds: float | None = None  # of a step
    memory: int | None = None  # bytes of the rank that needs most
    sent: int | None = None  # bytes that the traced rank sends
    bubble: float | None = (
        None  # time in which ranks do not compute, as a part of that in which they do
    )
    measured: float | None = None  # seconds, where it was run


@dataclasses.dataclass
class TuningReport:
    """What `tune` found. `candidates`: those that can run, the fastest first; `refused`: the others, with reasons."""

    ranks: int
    memory: int | None
    candidates: list[Candidate]
    refused: list[Candidate]

    @property
    def best(self) -> Candidate:
        if not self.candidates:
            reasons = sorted({each.reason for each in self.refused})
            raise ValueError(
                f"tune: expected a way that can run, got none on {self.ranks} ranks: {'; '.join(reasons[:6])}"
            )
        measured = [(each.measured, i) for i, each in enumerate(self.candidates) if each.measured]
        return self.candidates[min(measured)[1] if measured else 0]

    def to_json(self) -> str:
        return json.dumps({"version": 1, **dataclasses.asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> TuningReport:
        values = json.loads(text)
        if values.pop("version", None) != 1:
            raise ValueError("TuningReport: expected JSON of version 1 that `tenon tune` wrote")
        for key in ("candidates", "refused"):
            values[key] = [
                Candidate(**{**each, "config": Config(**each["config"])}) for each in values[key]
            ]
        return TuningReport(**values)

    def rows(self, count: int = 10) -> list[list[str]]:
        """A table of the fastest."""
        rows = [["", "way", "step", "memory", "sent", "bubble", "measured"]]
        for place, each in enumerate(self.candidates[:count]):
            assert each.seconds is not None and each.memory is not None and each.sent is not None
            rows.append(
                [
                    str(place + 1),
                    str(each.config),
                    f"{1e3 * each.seconds:.2f} ms",
                    f"{each.memory / 1e6:.1f} MB",
                    f"{each.sent / 1e6:.2f} MB",
                    f"{each.bubble or 0:.1%}",
                    "" if each.measured is None else f"{1e3 * each.measured:.2f} ms",
                ]
            )
        return rows


def tune(
    recipe: Recipe,
    ranks: int,
    machine: Machine,
    *,
    memory: int | None = None,
    space: Mapping[str, Sequence[Any]] | None = None,
    device: str = "meta",
    notify: Notify | None = None,
) -> TuningReport:
    """Simulate a step of the recipe in each way that there is to divide it over `ranks` ranks of a machine: dp, ZeRO's stages,
    tensor and sequence parallel, pipelines with their schedules and chunks, micro-batches, recomputing, experts and parts of
    sequences. `space` says which values are tried, as {"tp": [1, 2], "zero": [0, 1]}. Ways that do not divide, that the
    framework does not have, or that take more than `memory` bytes of a rank are refused with their reason."""
    ways = list(configs_of(recipe, ranks, space))
    found: list[Candidate] = []
    refused = [Candidate(config, reason) for config, reason in ways if reason]
    open_ones = [config for config, reason in ways if not reason]
    for index, config in enumerate(open_ones):
        if notify is not None:
            notify(index, len(open_ones), config)
        candidate = _simulated(recipe, config, machine, device)
        if not candidate.reason and memory is not None and (candidate.memory or 0) > memory:
            candidate.reason = f"{candidate.memory:,} bytes of a rank are more than {memory:,}"
        (refused if candidate.reason else found).append(candidate)
    # Equal times: what takes less memory, and has fewer parts.
    found = sorted(found, key=lambda each: (each.seconds, each.memory, len(str(each.config))))
    return TuningReport(ranks, memory, found, refused)


def _simulated(recipe: Recipe, config: Config, machine: Machine, device: str) -> Candidate:
    try:
        if config.pp > 1:
            return _pipelined(recipe, config, machine, device)
        trace = trace_step(lambda: build_step(recipe, config), config.ranks, device=device)
    except (ValueError, NotImplementedError, RuntimeError) as error:
        # What the parts of the framework do not do together is said by them.
        return Candidate(config, f"{type(error).__name__}: {error}")
    made = predict(trace, machine)
    idle = (made.seconds - made.computing) / made.computing if made.computing else 0.0
    return Candidate(config, "", made.seconds, trace.peak, trace.bytes_sent, idle)


def _pipelined(recipe: Recipe, config: Config, machine: Machine, device: str) -> Candidate:
    """Of the ranks of one stage all stages are traced, and then played on ranks of their own."""
    chunks = config.chunks if config.chunks > 1 else None
    schedule = schedule_of(config.schedule, config.pp, config.microbatches, chunks)
    handed: dict[int, int] = {}

    def build() -> Callable[[], None]:
        step = build_stages(recipe, config)
        return lambda: handed.update(step())

    trace = trace_step(build, config.ranks // config.pp, device=device)
    timeline = _played(config, schedule, trace, machine, handed)
    memory = max(_memory(schedule, trace, rank) for rank in range(config.pp))
    sent = _sent(schedule, trace, handed)
    return Candidate(config, "", of_timeline(timeline).seconds, memory, sent, timeline.bubble)


def _played(
    config: Config,
    schedule: Schedule,
    trace: StepTrace,
    machine: Machine,
    handed: Mapping[int, int],
) -> Timeline:
    link = machine.link_of("pp", config.pp)
    passes = {
        (begin, stage): tasks_of(
            trace.between(f"{begin}{stage}", f"{end}{stage}"), machine, schedule.rank_of(stage)
        )
        for stage in range(schedule.stages)
        for begin, end in ((FORWARD, "G"), (BACKWARD, "E"))
    }

    def work(action: Action) -> list[Task]:
        kind = BACKWARD if action.kind == WEIGHTS else action.kind
        tasks = passes[kind, action.stage]
        if kind == FORWARD or not schedule.splits_backward:
            return tasks
        # Gradients of inputs take as many products as those of weights; what ranks say belongs to the former.
        halves = [Work(t.seconds / 2, t.label) if isinstance(t, Work) else t for t in tasks]
        is_half = action.kind == WEIGHTS
        return [t for t in halves if isinstance(t, Work)] if is_half else halves

    def message(action: Action) -> float:
        boundary = action.stage if action.kind == FORWARD else action.stage - 1
        return link.seconds("exchange", 2, handed[boundary])

    programs = tasks_of_schedule(schedule, work, message)
    for rank, tasks in programs.items():
        for stage in schedule.stages_of(rank):
            tasks += tasks_of(trace.between(f"U{stage}", f"V{stage}"), machine, rank)
    return simulate(programs)


def _memory(schedule: Schedule, trace: StepTrace, rank: int) -> int:
    """Parameters, state and gradients of the rank's stages, and activations of as many micro-batches as the schedule keeps."""
    at = {each.label: each.current for each in trace.events if isinstance(each, Mark)}
    stages = schedule.stages_of(rank)
    activations = [at[f"G{stage}"] - at[f"F{stage}"] for stage in stages]
    weights = _kept_by_stage(trace)
    return int(
        sum(weights[stage] for stage in stages)
        + schedule.peak_activations(rank) * max(max(activations), 0)
    )


def _kept_by_stage(trace: StepTrace) -> dict[int, float]:
    """What all stages keep, by what their updates read and write; and their gradients once more."""
    at = {each.label: each.current for each in trace.events if isinstance(each, Mark)}
    grads = {
        int(label[1:]): at[f"U{label[1:]}"] - _behind(at, int(label[1:]))
        for label in at
        if label.startswith("U")
    }
    total = sum(grads.values()) or 1
    return {stage: grad + trace.kept * grad / total for stage, grad in grads.items()}


def _behind(at: Mapping[str, int], stage: int) -> int:
    """Bytes in use once the gradients of a stage are let go: at the next mark."""
    return at.get(f"U{stage + 1}", at["F0"])


def _sent(schedule: Schedule, trace: StepTrace, handed: Mapping[int, int]) -> int:
    """Of the rank that sends most."""
    of_stages = {
        stage: schedule.microbatches
        * sum(
            getattr(each, "sent", 0)
            for begin, end in (("F", "G"), ("B", "E"))
            for each in trace.between(f"{begin}{stage}", f"{end}{stage}")
        )
        + sum(getattr(each, "sent", 0) for each in trace.between(f"U{stage}", f"V{stage}"))
        for stage in range(schedule.stages)
    }
    totals = []
    for rank in range(schedule.ranks):
        total = sum(of_stages[stage] for stage in schedule.stages_of(rank))
        for other in range(schedule.ranks):
            for kind, stage, _ in schedule.messages(rank, other):
                total += handed[stage - 1 if kind == FORWARD else stage]
        totals.append(total)
    return max(totals)
