# SPDX-License-Identifier: Apache-2.0
"""How things are timed: in turns, on a clock that is watched, beside whatever else the machine does.

    times = interleave({"tenon": lambda: x + y, "numpy": lambda: a + b}, rounds=21)
    times.ratio("numpy")    # of the medians of the rounds' ratios

The contestants take turns within each round, so that a machine whose clock changes, or that others use,
slows all of them down. A virtual processor whose core is shared runs at half its speed for seconds
without the system noticing: an empty loop is timed before and after each turn, and a round in which it
took longer than the best seen is measured again.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
import timeit
from collections.abc import Callable

SPINS = 10_000  # of an empty loop: about 0.1 ms
SLOW = 1.15  # a loop that takes this much longer than the best ran on a slow clock
TURN = 0.004  # seconds a turn of a contestant lasts, or one call if that takes longer
FEW = 5  # rounds: with fewer clean ones, all are used, and the result says so
FOREIGN = 0.05  # use of a processor by other processes that is worth a warning

_empty_loop = timeit.Timer("pass")


class Turns:
    """Runs a statement a given number of times, and tells how fast an empty loop ran around it."""

    def __init__(self, timer: timeit.Timer | Callable[[], object]):
        self.timer = timer if isinstance(timer, timeit.Timer) else timeit.Timer(timer)
        self.process = os.getpid()

    def run(self, count: int) -> tuple[float, float]:
        """Seconds for `count` calls, and for the slower of the two empty loops."""
        before = _empty_loop.timeit(SPINS)
        seconds = self.timer.timeit(count)
        return seconds, max(before, _empty_loop.timeit(SPINS))


@dataclasses.dataclass
class Times:
    """Seconds per call: for each contestant a list over the rounds. The first is the one compared."""

    rounds: dict[str, list[float]]
    clean: bool  # measured on a fast clock; otherwise all rounds were used
    foreign: float  # processors that other processes used meanwhile

    @property
    def subject(self) -> str:
        return next(iter(self.rounds))

    @property
    def peers(self) -> list[str]:
        return list(self.rounds)[1:]

    def between(self, subject: str, *peers: str) -> Times:
        """Some of the contestants, in this order; those that were not there are left out."""
        names = [subject, *(peer for peer in peers if peer in self.rounds)]
        return Times({name: self.rounds[name] for name in names}, self.clean, self.foreign)

    def median(self, name: str | None = None) -> float:
        return statistics.median(self.rounds[name or self.subject])

    def best(self, name: str | None = None) -> float:
        return min(self.rounds[name or self.subject])

    def spread(self, name: str | None = None) -> float:
        """The middle half of the rounds lies within this fraction of the median."""
        values = self.rounds[name or self.subject]
        if len(values) < 2:
            return 0.0
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return (high - low) / middle

    def ratio(self, peer: str) -> float:
        """Time of the subject to the peer's: the median over the rounds."""
        return statistics.median(
            a / b for a, b in zip(self.rounds[self.subject], self.rounds[peer])
        )

    def best_ratio(self, peer: str) -> float:
        return self.best() / self.best(peer)


def interleave(
    contestants: dict[str, object], rounds: int = 21, turn: float = TURN, patience: int = 3
) -> Times:
    """Times contestants (callables, timeit.Timer, or what has Turns' `run`) in turns. Rounds on a slow
    clock are repeated, at most `patience` times as many in all."""
    turns = {name: c if hasattr(c, "run") else Turns(c) for name, c in contestants.items()}
    counts = {name: calls_in(turn, each) for name, each in turns.items()}
    use = ForeignUse({os.getpid(), *(each.process for each in turns.values())})
    measured, spins = [], []
    for _ in range(rounds * patience):
        each_round, slowest = {}, 0.0
        for name, each in turns.items():
            seconds, spin = each.run(counts[name])
            each_round[name] = seconds / counts[name]
            slowest = max(slowest, spin)
        measured.append(each_round)
        spins.append(slowest)
        limit = min(spins) * SLOW
        if sum(spin <= limit for spin in spins) >= rounds:
            break
    kept = [each for each, spin in zip(measured, spins) if spin <= limit]
    clean = len(kept) >= min(FEW, rounds)
    chosen = kept if clean else measured
    return Times({name: [each[name] for each in chosen] for name in turns}, clean, use.stop())


def calls_in(seconds: float, turns: Turns) -> int:
    """How many calls take that long, after a first call that may be slower."""
    turns.run(1)
    count = 1
    while True:
        taken = turns.run(count)[0]
        if taken >= seconds / 8 or count >= 1 << 24:
            return max(1, int(count * seconds / max(taken, 1e-9)))
        count *= 4


class ForeignUse:
    """Processors used by processes other than those given, since the start."""

    def __init__(self, processes: set[int] | None = None):
        self.processes = processes or {os.getpid()}
        self.start = self.read()

    def read(self) -> tuple[float, float, float]:
        ticks = os.sysconf("SC_CLK_TCK")
        try:
            with open("/proc/stat", encoding="ascii") as file:
                user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
            own = 0
            for process in self.processes:
                with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
                own += int(fields[11]) + int(fields[12])
        except OSError:  # no /proc: nothing is known of others
            return time.perf_counter(), 0.0, 0.0
        return time.perf_counter(), (user + nice + system + irq + softirq) / ticks, own / ticks

    def stop(self) -> float:
        now = self.read()
        wall, busy, own = (b - a for a, b in zip(self.start, now))
        return (
            max(0.0, busy - own) / wall if wall > 0.1 else 0.0
        )  # ticks are 10 ms: too coarse below


def use_by_others(seconds: float = 0.5) -> float:
    """Processors in use while this process sleeps."""
    use = ForeignUse()
    time.sleep(seconds)
    return use.stop()
