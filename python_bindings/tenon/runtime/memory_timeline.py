# SPDX-License-Identifier: Apache-2.0
"""How the memory of a device rises and falls over operator calls."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

from tenon import _core


class Point(NamedTuple):
    """After one operator call."""

    operator: str
    current: int  # bytes in use
    change: int  # since the point before: what was freed meanwhile counts, too


class timeline:
    """Record the memory in use after every operator call of this thread in a block.

    with tenon.runtime.memory.timeline() as t:
        loss = model(x).sum()
        loss.backward()
    print(t)            # which operators raised the use, and where its peak was
    t.points            # every call

    Reading the statistics takes some ten microseconds for each call.
    """

    def __init__(self, device: _core.device | str | None = None) -> None:
        self.device = device
        self.points: list[Point] = []
        self._observer = _core._CallObserver(self._see)
        self._before = 0

    def __enter__(self) -> timeline:
        self.points = []
        self._before = self._current()
        self._observer.enter()
        return self

    def __exit__(self, *exception: object) -> None:
        self._observer.exit()

    @property
    def peak(self) -> Point:
        """The first point at which most memory was in use."""
        if not self.points:
            raise ValueError("timeline: expected operator calls in the block, there was none")
        return max(self.points, key=lambda point: point.current)

    def total(self) -> list[tuple[str, int, int]]:
        """Operator, calls, and bytes that its calls added in all, the largest first."""
        added: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for point in self.points:
            calls[point.operator] += 1
            added[point.operator] += point.change
        return [(name, calls[name], count) for name, count in added.most_common()]

    def _current(self) -> int:
        return json.loads(_core.memory_stats(self.device, False))["current"]

    def _see(
        self, name: str, arguments: dict[str, Any], results: list[Any], has_parts: bool
    ) -> None:
        current = self._current()
        self.points.append(Point(name.removeprefix("tenon::"), current, current - self._before))
        self._before = current

    def __repr__(self) -> str:
        if not self.points:
            return "no operator calls"
        rows = [f"{'bytes added':>14}  {'calls':>6}  operator"]
        rows += [f"{count:>14,}  {calls:>6}  {name}" for name, calls, count in self.total()]
        at = self.points.index(self.peak)
        rows.append(
            f"peak {self.peak.current:,} bytes after call {at + 1} of {len(self.points)}, "
            f"{self.peak.operator}"
        )
        return "\n".join(rows)
