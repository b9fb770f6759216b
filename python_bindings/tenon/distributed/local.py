# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of this process, for tests and debuggers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tenon
from tenon import _core

from .host_group import LOCAL_STORE, NO_SECRET
from .world import DEFAULT_TIMEOUT, _make_world, _thread_world


class _Turn:
    """Lets one rank run at a time. Behind each call of all ranks they run in the order of ranks; behind messages, calls
    of parts of the ranks, and waits for works, as they come."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._changed = threading.Condition()
        self._meetings = [0] * size  # of all ranks, that each has come out of
        self._has_run = [0] * size  # behind how many of them each has run
        self._is_over = [False] * size
        self._running: int | None = None
        self._random: list[Any] = [_core.random_state()] * size

    def of(self, rank: int) -> _TurnOfRank:
        return _TurnOfRank(self, rank)

    def take(self, rank: int, is_meeting: bool) -> None:
        with self._changed:
            if is_meeting:
                self._meetings[rank] += 1
            self._changed.wait_for(lambda: self._running is None and self._is_next(rank))
            self._has_run[rank] = self._meetings[rank]
            self._running = rank
        _core.set_random_state(*self._random[rank])

    def give(self, rank: int, is_over: bool = False) -> None:
        # What a recorded program does not notice: the stream is put back where it was.
        self._random[rank] = _core.random_state()
        with self._changed:
            self._running = None
            self._is_over[rank] = is_over
            self._changed.notify_all()

    def leave(self, rank: int) -> None:
        """It has never run, and never will."""
        with self._changed:
            self._is_over[rank] = True
            self._changed.notify_all()

    def _is_next(self, rank: int) -> bool:
        """A meeting that one rank has come out of all others have entered: the lower ones are about to come."""
        return all(
            self._is_over[other] or self._has_run[other] >= self._meetings[rank]
            for other in range(rank)
        )


class _TurnOfRank:
    def __init__(self, turn: _Turn, rank: int) -> None:
        self._turn, self._rank = turn, rank

    @contextlib.contextmanager
    def given_away(self, size: int = 0) -> Iterator[None]:
        """While this rank waits, for `size` ranks that make the same call."""
        self._turn.give(self._rank)
        has_met = False
        try:
            yield
            has_met = size == self._turn.size
        finally:
            # A call that raised, perhaps on this rank alone, was no meeting that the others come out of.
            self._turn.take(self._rank, has_met)


class LocalRanks:
    """`size` ranks in this process. They talk as processes do, by the same code, and one runs at a time: results have
    the bits of processes, and a debugger stops one place.

        with tenon.distributed.local(4) as ranks:
            losses = ranks.run(train)               # train() four times; what they returned, by rank

    Inside, `get_rank()` and all calls are those of the rank whose thread calls. Each rank has its own random numbers,
    which go on from those of the caller; modules and other objects of Python are shared.
    """

    def __init__(self, size: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        if size < 1:
            raise ValueError(f"local: expected one rank at least, got {size}")
        self.size, self.timeout = size, timeout
        self._runs = 0

    def __enter__(self) -> LocalRanks:
        self._store = _core.Store(LOCAL_STORE, "", 0, NO_SECRET, self.timeout)
        return self

    def __exit__(self, *_: object) -> None:
        del self._store

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """function(*args, **kwargs) on every rank. The exception of the rank that failed first is raised here."""
        if not hasattr(self, "_store"):
            raise RuntimeError(
                "run: expected to be called inside of `with tenon.distributed.local(n) as ranks`"
            )
        self._runs += 1
        turn, meeting = _Turn(self.size), f"world/local/{self._runs}"
        results: list[Any] = [None] * self.size
        errors: list[tuple[int, BaseException]] = []

        def work(rank: int) -> None:
            # Its turn begins once all ranks have met.
            group = _make_world(
                self._store, meeting, "world", rank, self.size, self.timeout, turn.of(rank)
            )
            _thread_world.group = group
            turn.take(rank, is_meeting=True)
            try:
                results[rank] = function(*args, **kwargs)
            except BaseException as error:
                errors.append((rank, error))
                group.abort(f"rank {rank} ended with {type(error).__name__}: {error}")
            finally:
                turn.give(rank, is_over=True)
                for mesh in getattr(_thread_world, "meshes", ()):
                    mesh.close()
                _thread_world.group = None
                group.close()

        def guarded(rank: int) -> None:
            try:
                work(rank)
            except BaseException as error:
                errors.append((rank, error))
                turn.leave(rank)

        before = tenon.random.get_state()
        threads = [
            threading.Thread(target=guarded, args=(rank,), name=f"rank {rank}", daemon=True)
            for rank in range(self.size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tenon.random.set_state(before)
        if errors:
            rank, error = errors[0]
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"on rank {rank} of {self.size}")
            raise error
        return results


def local(size: int, timeout: float = DEFAULT_TIMEOUT) -> LocalRanks:
    """Ranks that are threads of this process: see LocalRanks."""
    return LocalRanks(size, timeout)
