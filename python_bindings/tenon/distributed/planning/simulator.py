# SPDX-License-Identifier: Apache-2.0
"""Discrete events: ranks that compute one thing at a time, and a link of each that carries one thing at a time.

A program is a list of tasks for each rank. Time advances from event to event, and no task is approximated: the bubbles of
pipelines are those of their formulas.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class Work:
    """The rank computes for so many seconds."""

    seconds: float
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of `ranks`, which begins when all of them have come to it and their links are free, and takes the links of all of
    them for so many seconds. `key`: calls with equal keys meet, in their order. `number`: the rank goes on meanwhile."""

    key: Hashable
    ranks: tuple[int, ...]
    seconds: float
    number: int = 0
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Await:
    """The rank waits for its call of this number."""

    number: int


@dataclasses.dataclass(frozen=True)
class Send:
    """A message to another rank, which takes both links; the sender goes on. It waits in the sender's queue, whether or not
    the receiver has come to it."""

    to: int
    key: Hashable
    seconds: float


@dataclasses.dataclass(frozen=True)
class Receive:
    """The rank waits for the message of this key."""

    key: Hashable


Task = Work | Call | Await | Send | Receive


@dataclasses.dataclass(frozen=True)
class Span:
    """When something took place on a rank."""

    start: float
    end: float
    label: str


@dataclasses.dataclass
class Timeline:
    """What came of it, in seconds from the start."""

    computing: dict[int, list[Span]]
    links: dict[int, list[Span]]
    ends: dict[int, float]

    @property
    def end(self) -> float:
        return max(self.ends.values(), default=0.0)

    def busy(self, rank: int) -> float:
        """Seconds in which the rank computes."""
        return sum(span.end - span.start for span in self.computing[rank])

    def sending(self, rank: int) -> float:
        """Seconds in which its link is in use."""
        return sum(span.end - span.start for span in self.links[rank])

    def overlap(self, rank: int) -> float:
        """Seconds in which the rank computes while its link is in use."""
        total, links = 0.0, deque(self.links[rank])
        for span in self.computing[rank]:
            while links and links[0].end <= span.start:
                links.popleft()
            for link in links:
                if link.start >= span.end:
                    break
                total += min(span.end, link.end) - max(span.start, link.start)
        return total

    @property
    def bubble(self) -> float:
        """Time in which ranks do not compute, as a part of the time in which they do."""
        busy = sum(map(self.busy, self.computing))
        return (self.end * len(self.computing) - busy) / busy if busy else 0.0


@dataclasses.dataclass
class _Flight:
    """Something that links carry, once all of `awaited` have come to it."""

    ranks: tuple[int, ...]
    awaited: set[int]
    seconds: float
    label: str
    end: float | None = None
    sleepers: set[int] = dataclasses.field(default_factory=set)  # ranks that wait for its end


class _Rank:
    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks, self.next = tasks, 0
        self.link_free = 0.0
        self.calls: dict[int, _Flight] = {}  # that go on, by number
        self.met: defaultdict[Hashable, int] = defaultdict(int)  # calls by key


class _Simulation:
    """Ranks take their tasks in the order of time, so that links carry first what was complete first."""

    def __init__(self, programs: Mapping[int, Sequence[Task]]) -> None:
        self.ranks = {rank: _Rank(tasks) for rank, tasks in programs.items()}
        self.events = [(0.0, rank) for rank in sorted(programs)]  # a heap: when a rank goes on
        self.calls: dict[Hashable, _Flight] = {}
        self.messages: defaultdict[Hashable, deque[_Flight]] = defaultdict(deque)
        self.receivers: dict[Hashable, int] = {}  # that came before the message
        self.timeline = Timeline(
            {r: [] for r in programs}, {r: [] for r in programs}, dict.fromkeys(programs, 0.0)
        )

    def run(self) -> Timeline:
        while self.events:
            now, rank = heapq.heappop(self.events)
            own = self.ranks[rank]
            if own.next == len(own.tasks):
                self.timeline.ends[rank] = now
                continue
            task = own.tasks[own.next]
            own.next += 1
            self._take(rank, own, task, now)
        stuck = {r: each for r, each in self.ranks.items() if r in self._sleeping()}
        if stuck:
            where = "; ".join(f"rank {r} in {e.tasks[e.next - 1]}" for r, e in stuck.items())
            raise ValueError(
                f"simulate: expected programs that end, got ranks that wait for each other: {where}"
            )
        return self.timeline

    def _sleeping(self) -> set[int]:
        found = set(self.receivers.values())
        for flight in self.calls.values():
            found |= flight.sleepers
        return found

    def _take(self, rank: int, own: _Rank, task: Task, now: float) -> None:
        if isinstance(task, Work):
            if task.seconds:
                span = Span(now, now + task.seconds, task.label)
                self.timeline.computing[rank].append(span)
            heapq.heappush(self.events, (now + task.seconds, rank))
        elif isinstance(task, Call):
            flight = self._meet(rank, own, task, now)
            if task.number:
                own.calls[task.number] = flight
                heapq.heappush(self.events, (now, rank))
            else:
                self._sleep(rank, flight, now)
        elif isinstance(task, Await):
            if task.number not in own.calls:
                raise ValueError(
                    f"simulate: expected rank {rank} to wait for a call that it has begun and not waited for, got {task}"
                )
            self._sleep(rank, own.calls.pop(task.number), now)
        elif isinstance(task, Send):
            flight = _Flight((rank, task.to), set(), task.seconds, f"{rank} to {task.to}")
            self._carry(flight, now)
            self.messages[task.key].append(flight)
            if task.key in self.receivers:
                self._sleep(self.receivers.pop(task.key), self.messages[task.key].popleft(), now)
            heapq.heappush(self.events, (now, rank))
        elif self.messages[task.key]:
            self._sleep(rank, self.messages[task.key].popleft(), now)
        else:
            self.receivers[task.key] = rank

    def _sleep(self, rank: int, flight: _Flight, now: float) -> None:
        if flight.end is None:
            flight.sleepers.add(rank)
        else:
            heapq.heappush(self.events, (max(now, flight.end), rank))

    def _meet(self, rank: int, own: _Rank, task: Call, now: float) -> _Flight:
        if rank not in task.ranks:
            raise ValueError(
                f"simulate: expected rank {rank} to be one of its call's ranks, got {task}"
            )
        place = (task.key, own.met[task.key])
        own.met[task.key] += 1
        flight = self.calls.get(place)
        if flight is None:
            ranks = tuple(each for each in task.ranks if each in self.ranks)
            flight = self.calls[place] = _Flight(ranks, set(ranks), task.seconds, task.label)
        flight.seconds = max(flight.seconds, task.seconds)
        flight.awaited.discard(rank)
        if not flight.awaited:
            del self.calls[place]
            self._carry(flight, now)
        return flight

    def _carry(self, flight: _Flight, now: float) -> None:
        start = max([now, *(self.ranks[each].link_free for each in flight.ranks)])
        flight.end = start + flight.seconds
        for each in flight.ranks:
            self.ranks[each].link_free = flight.end
            if flight.seconds:
                self.timeline.links[each].append(Span(start, flight.end, flight.label))
        for each in flight.sleepers:
            heapq.heappush(self.events, (flight.end, each))
        flight.sleepers = set()


def simulate(programs: Mapping[int, Sequence[Task]]) -> Timeline:
    """Play the programs of ranks. Ranks of a call that have no program count as if they did what the others do."""
    return _Simulation(programs).run()
