# SPDX-License-Identifier: Apache-2.0
"""What each rank of a pipeline does, as a table: which part of which micro-batch, in which order.

A table is data. It is checked and timed before a rank runs it, and drawn (`drawing`); which messages travel between two
ranks, and in which order, follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

FORWARD, BACKWARD, WEIGHTS = "F", "B", "W"


class Action(NamedTuple):
    """`kind` is F (forward), B (backward) or W (gradients of weights, where B leaves them out)."""

    kind: str
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch} of stage {self.stage}"


class Message(NamedTuple):
    """What an action of another rank waits for: the input of an F, or the gradient of a B."""

    kind: str
    stage: int
    microbatch: int


@dataclass(frozen=True)
class Span:
    """When an action runs, in units of one forward pass of a stage."""

    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """A table that was played with given durations."""

    spans: list[list[Span]]  # by rank
    end: float

    @property
    def bubble(self) -> float:
        """Idle time of all ranks, as a part of the time in which they work."""
        busy = sum(span.end - span.start for spans in self.spans for span in spans)
        return (self.end * len(self.spans) - busy) / busy


class Schedule:
    """`table[rank]` is the list of that rank's actions. Stage s of `ranks * chunks` lies on rank s % ranks.

    A table that leaves an action out, doubles one, or in which ranks wait for each other in a circle is refused.
    """

    def __init__(
        self,
        name: str,
        ranks: int,
        microbatches: int,
        table: Sequence[Sequence[Action]],
        chunks: int = 1,
    ) -> None:
        self.name, self.ranks, self.microbatches, self.chunks = name, ranks, microbatches, chunks
        self.stages = ranks * chunks
        self.table = [[Action(*action) for action in actions] for actions in table]
        self.splits_backward = any(a.kind == WEIGHTS for actions in self.table for a in actions)
        self._check()
        self.timeline = self.play()

    def rank_of(self, stage: int) -> int:
        return stage % self.ranks

    def stages_of(self, rank: int) -> list[int]:
        return list(range(rank, self.stages, self.ranks))

    def peak_activations(self, rank: int) -> int:
        """Of how many micro-batches, counted for each of its stages, a rank keeps activations at once, at most."""
        ends = WEIGHTS if self.splits_backward else BACKWARD
        live = peak = 0
        for action in self.table[rank]:
            live += (action.kind == FORWARD) - (action.kind == ends)
            peak = max(peak, live)
        return peak

    def messages(self, sender: int, receiver: int) -> list[Message]:
        """What `sender` sends to `receiver` in one step, in order. Nothing is sent to oneself."""
        if sender == receiver:
            return []
        result = []
        for kind, stage, microbatch in self.table[sender]:
            if kind == FORWARD and stage + 1 < self.stages:
                step = 1
            elif kind == BACKWARD and stage > 0:
                step = -1
            else:
                continue
            if self.rank_of(stage + step) == receiver:
                result.append(Message(kind, stage + step, microbatch))
        return result

    def needs(self, action: Action) -> list[Action]:
        """The actions that come before this one."""
        kind, stage, microbatch = action
        if kind == FORWARD:
            return [Action(FORWARD, stage - 1, microbatch)] if stage else []
        own = [Action(FORWARD if kind == BACKWARD else BACKWARD, stage, microbatch)]
        if kind == BACKWARD and stage + 1 < self.stages:
            own.append(Action(BACKWARD, stage + 1, microbatch))
        return own

    def play(self, forward: float = 1.0, backward: float = 1.0, weights: float = 1.0) -> Timeline:
        """When each action runs if a forward pass, the gradients of inputs and those of weights take so long, and
        messages no time. A backward pass that is not split takes as long as both of its halves."""
        lasts = {
            FORWARD: forward,
            BACKWARD: backward if self.splits_backward else backward + weights,
            WEIGHTS: weights,
        }
        ends: dict[Action, float] = {}
        spans: list[list[Span]] = [[] for _ in range(self.ranks)]
        moved = True
        while moved:
            moved = False
            for rank, actions in enumerate(self.table):
                while len(spans[rank]) < len(actions):
                    action = actions[len(spans[rank])]
                    needed = self.needs(action)
                    if any(need not in ends for need in needed):
                        break
                    free = spans[rank][-1].end if spans[rank] else 0.0
                    start = max([free, *(ends[need] for need in needed)])
                    ends[action] = start + lasts[action.kind]
                    spans[rank].append(Span(action, start, ends[action]))
                    moved = True
        self._refuse_circle(spans, ends)
        return Timeline(spans, max(ends.values(), default=0.0))

    def _refuse_circle(self, spans: list[list[Span]], ends: dict[Action, float]) -> None:
        waits = []
        for rank, actions in enumerate(self.table):
            if len(spans[rank]) < len(actions):
                action = actions[len(spans[rank])]
                missing = next(need for need in self.needs(action) if need not in ends)
                waits.append(f"rank {rank} waits in {action} for {missing}")
        if waits:
            raise ValueError(
                f"schedule {self.name}: expected an order in which every action can run, got ranks that wait for "
                f"each other: {'; '.join(waits)}"
            )

    def _check(self) -> None:
        if self.ranks < 1 or self.chunks < 1 or self.microbatches < 1:
            raise ValueError(
                f"schedule {self.name}: expected at least one rank, chunk and micro-batch, got {self.ranks}, "
                f"{self.chunks} and {self.microbatches}"
            )
        if len(self.table) != self.ranks:
            raise ValueError(
                f"schedule {self.name}: expected {self.ranks} lists of actions, got {len(self.table)}"
            )
        kinds = (FORWARD, BACKWARD, WEIGHTS) if self.splits_backward else (FORWARD, BACKWARD)
        for rank, actions in enumerate(self.table):
            expected = {
                Action(kind, stage, microbatch)
                for kind in kinds
                for stage in self.stages_of(rank)
                for microbatch in range(self.microbatches)
            }
            missing, extra = sorted(expected - set(actions)), sorted(set(actions) - expected)
            twice = sorted({action for action in actions if actions.count(action) > 1})
            for what, found in (("without", missing), ("with", extra), ("twice with", twice)):
                if found:
                    raise ValueError(
                        f"schedule {self.name}: expected each action of rank {rank} once, got a table {what} "
                        f"{', '.join(map(str, found[:4]))}"
                    )

    def __repr__(self) -> str:
        return (
            f"<Schedule {self.name}: {self.ranks} ranks, {self.stages} stages, {self.microbatches} micro-batches, "
            f"bubble {self.timeline.bubble:.1%}>"
        )
