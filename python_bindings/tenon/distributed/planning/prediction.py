# SPDX-License-Identifier: Apache-2.0
"""How long a step takes, and of what: the tasks of a trace, played by the simulator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from ..pipelines.schedule import BACKWARD, FORWARD, Action, Schedule
from .events import Compute, Event, StepTrace, Transfer, Wait
from .machine import Machine
from .simulator import Await, Call, Receive, Send, Task, Timeline, Work, simulate


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Of a step on one rank, in seconds."""

    seconds: float
    computing: float
    sending: float  # in which its link is in use
    overlap: float  # in which both are
    timeline: Timeline = dataclasses.field(repr=False)


def predict(trace: StepTrace, machine: Machine) -> Prediction:
    """How long the step of a trace takes on a machine, where all ranks do what the traced one does."""
    return of_timeline(simulate({trace.rank: tasks_of(trace.events, machine, trace.rank)}))


def of_timeline(timeline: Timeline) -> Prediction:
    """Of the rank that ends last."""
    rank = max(timeline.ends, key=lambda each: timeline.ends[each])
    return Prediction(
        timeline.end,
        timeline.busy(rank),
        timeline.sending(rank),
        timeline.overlap(rank),
        timeline,
    )


def tasks_of(events: Iterable[Event], machine: Machine, rank: int) -> list[Task]:
    """What the rank does, where the other ranks of its calls come to them when it does."""
    tasks: list[Task] = []
    for event in events:
        if isinstance(event, Compute):
            tasks.append(Work(machine.seconds_of(event), event.operator.removeprefix("tenon::")))
        elif isinstance(event, Transfer):
            seconds = machine.seconds_of(event)
            label = f"{event.call} of {event.group}"
            tasks.append(Call((event.group, rank), (rank,), seconds, event.number, label))
        elif isinstance(event, Wait):
            tasks.append(Await(event.number))
    return tasks


def tasks_of_schedule(
    schedule: Schedule,
    work: Callable[[Action], list[Task]],
    message: Callable[[Action], float],
) -> dict[int, list[Task]]:
    """Programs of the ranks of a pipeline: what `work` says that an action takes, and messages of so many seconds behind an
    action whose result another rank waits for."""
    programs: dict[int, list[Task]] = {}
    for rank, actions in enumerate(schedule.table):
        tasks: list[Task] = []
        for action in actions:
            kind, stage, microbatch = action
            before = {FORWARD: stage - 1, BACKWARD: stage + 1}.get(kind, stage)
            if 0 <= before < schedule.stages and schedule.rank_of(before) != rank:
                tasks.append(Receive((kind, stage, microbatch)))
            tasks += work(action)
            behind = {FORWARD: stage + 1, BACKWARD: stage - 1}.get(kind, stage)
            if 0 <= behind < schedule.stages and schedule.rank_of(behind) != rank:
                key = (kind, behind, microbatch)
                tasks.append(Send(schedule.rank_of(behind), key, message(action)))
        programs[rank] = tasks
    return programs


def play_schedule(
    schedule: Schedule,
    forward: float = 1.0,
    backward: float = 1.0,
    weights: float = 1.0,
    message: float = 0.0,
) -> Timeline:
    """A pipeline whose passes take so long, in which messages take time, too."""
    lasts = {
        FORWARD: forward,
        BACKWARD: backward if schedule.splits_backward else backward + weights,
    }
    return simulate(
        tasks_of_schedule(
            schedule,
            lambda action: [Work(lasts.get(action.kind, weights), str(action))],
            lambda action: message,
        )
    )
