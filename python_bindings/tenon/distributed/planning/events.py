# SPDX-License-Identifier: Apache-2.0
"""What one rank does in a step, in order: operator calls, messages, and where it waits for messages."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

Argument = Any  # a number, a text, a TensorKind, or a tuple of these


@dataclasses.dataclass(frozen=True)
class TensorKind:
    """What the time of an operator depends on, of one of its tensors."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()  # empty: in one piece


@dataclasses.dataclass(frozen=True)
class Compute:
    """One operator call on this rank's parts."""

    operator: str
    arguments: tuple[tuple[str, Argument], ...]
    flops: int
    bytes: int  # of its tensors, read and written
    current: int = 0  # bytes in use behind it

    @property
    def signature(self) -> tuple[str, tuple[tuple[str, Argument], ...]]:
        return self.operator, self.arguments


@dataclasses.dataclass(frozen=True)
class Transfer:
    """One call of all ranks of a group, as this rank sees it. `number`: of a call that goes on while the rank computes, for
    which a Wait waits; 0: the rank waits for it here."""

    call: str  # all_reduce, all_gather, ...
    group: str
    size: int  # ranks of the group
    sent: int  # bytes
    received: int
    number: int = 0
    line: str = ""  # of the program


@dataclasses.dataclass(frozen=True)
class Wait:
    number: int


@dataclasses.dataclass(frozen=True)
class Mark:
    """A place in the step that the program has named."""

    label: str
    current: int = 0  # bytes in use here


Event = Compute | Transfer | Wait | Mark


@dataclasses.dataclass(frozen=True)
class StepTrace:
    """A step of rank `rank` of `ranks`, none of which is fiction: bytes are those that the calls of groups would send,
    FLOPs those of the operators' definitions, memory what tensors would take while they live."""

    ranks: int
    rank: int
    events: tuple[Event, ...]
    kept: int  # bytes in use between steps: parameters, state of optimizers
    peak: int  # bytes in use at most

    @property
    def flops(self) -> int:
        return sum(each.flops for each in self.events if isinstance(each, Compute))

    @property
    def transfers(self) -> list[Transfer]:
        return [each for each in self.events if isinstance(each, Transfer)]

    @property
    def bytes_sent(self) -> int:
        return sum(each.sent for each in self.transfers)

    def sent_by_group(self) -> dict[str, int]:
        """Bytes that this rank sends, by the group of the call: the name of an axis of a mesh, or that of the group."""
        total: Counter[str] = Counter()
        for each in self.transfers:
            total[each.group] += each.sent
        return dict(total)

    def between(self, begin: str, end: str) -> list[Event]:
        """The events between two marks."""
        labels = [each.label if isinstance(each, Mark) else "" for each in self.events]
        start = labels.index(begin)
        return list(self.events[start + 1 : labels.index(end, start)])

    def __repr__(self) -> str:
        calls = sum(isinstance(each, Compute) for each in self.events)
        rows = [
            f"rank {self.rank} of {self.ranks}: {self.flops:,} FLOPs in {calls} calls, {self.kept:,} bytes kept, "
            f"{self.peak:,} bytes in use at most"
        ]
        table: dict[tuple[str, str, int], list[int]] = {}
        for each in self.transfers:
            row = table.setdefault((each.group, each.call, each.size), [0, 0, 0])
            row[0], row[1], row[2] = row[0] + 1, row[1] + each.sent, row[2] + each.received
        if table:
            rows.append(
                f"{'group':>12} {'call':>15} {'ranks':>6} {'calls':>6} {'sent':>15} {'received':>15}"
            )
        for (group, call, size), (count, sent, received) in table.items():
            rows.append(f"{group:>12} {call:>15} {size:>6} {count:>6} {sent:>15,} {received:>15,}")
        return "\n".join(rows)


def kinds_of(events: Iterable[Event]) -> dict[tuple[str, Any], Compute]:
    """One operator call of each kind."""
    return {each.signature: each for each in events if isinstance(each, Compute)}
