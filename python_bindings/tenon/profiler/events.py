# SPDX-License-Identifier: Apache-2.0
"""What was recorded, decoded: events in order, each knowing what it lies in."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from tenon import _core
from tenon._tensor.dtypes import NAMES

from .scope import name_of

_OPERATOR, _SCOPE, _MEMORY = range(3)
_FAILED, _BACKWARD = 1, 2

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

Frame = tuple[str, int, str]  # file, line, function


@dataclasses.dataclass(slots=True, eq=False)
class Event:
    """A piece of work. Times are nanoseconds of the host's monotonic clock (time.monotonic_ns)."""

    name: str
    kind: str  # "operator", "scope", "module", "step", or of a device "kernel", "copy", "fill"
    begin_ns: int
    end_ns: int
    track: str  # "host", or the device and its stream
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()  # of tensor arguments: (dtype, shape)
    stack: tuple[Frame, ...] = ()  # Python's outside of Tenon, innermost first
    failed: bool = False
    backward: bool = False  # called by a backward pass
    bytes: int = 0  # moved by copies and fills of a device
    memory: int | None = (
        None  # bytes by which the memory in use has grown since the operator before
    )
    parent: Event | None = None  # on the same track
    children_ns: int = 0

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def self_ns(self) -> int:
        """Without what lies in it."""
        return max(0, self.duration_ns - self.children_ns)

    @property
    def module(self) -> str:
        """The path of the module whose call it lies in; "" outside of modules."""
        event = self.parent
        while event is not None and event.kind != "module":
            event = event.parent
        return event.name if event is not None else ""


@dataclasses.dataclass(slots=True)
class Memory:
    """The memory in use on a device at one moment."""

    time_ns: int
    device: str
    bytes: int


def decode(
    records: list[tuple[int, int, int, int, int, int, int]],
    details: list[int],
    frames: dict[int, tuple[Frame, ...]],
) -> tuple[list[Event], list[Memory]]:
    """Events in the order in which they began, and what memory was in use when."""
    events: list[Event] = []
    memory: list[Memory] = []
    names: dict[int, str] = {}
    in_use: dict[int, int] = {}
    for begin, end, what, kind, flags, shapes, stack in records:
        if kind == _MEMORY:
            memory.append(Memory(begin, _device_name(what), end))
            if what in in_use:
                events[-1].memory = end - in_use[what]
            in_use[what] = end
            continue
        if kind == _SCOPE:
            scope_kind, name = name_of(what)
            events.append(Event(name, scope_kind, begin, end, "host"))
            continue
        if what not in names:
            names[what] = (_core.operator_name(what) or f"operator {what}").removeprefix("tenon::")
        events.append(
            Event(
                names[what],
                "operator",
                begin,
                end,
                "host",
                _shapes(details, shapes - 1) if shapes else (),
                frames.get(stack, ()),
                bool(flags & _FAILED),
                bool(flags & _BACKWARD),
            )
        )
    return nest(events), memory


def outside_of_tenon(stacks: dict[int, list[Frame]]) -> dict[int, tuple[Frame, ...]]:
    """The lines of the program in each stack."""
    return {
        number: tuple(frame for frame in lines if not frame[0].startswith(_PACKAGE))
        for number, lines in stacks.items()
    }


def nest(events: list[Event]) -> list[Event]:
    """Sort the events of one track by their beginnings, and tell each what it lies in."""
    events.sort(key=lambda event: (event.begin_ns, -event.end_ns))
    open_: list[Event] = []
    for event in events:
        while open_ and open_[-1].end_ns <= event.begin_ns:
            open_.pop()
        if open_:
            # Clocks of two readings may overlap by a few nanoseconds.
            event.end_ns = min(event.end_ns, open_[-1].end_ns)
            event.parent = open_[-1]
            event.parent.children_ns += event.duration_ns
        open_.append(event)
    return events


def _shapes(details: list[int], at: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    shapes: list[tuple[str, tuple[int, ...]]] = []
    while details[at] >= 0:
        dtype, ndim = details[at : at + 2]
        shapes.append((NAMES[dtype], tuple(details[at + 2 : at + 2 + ndim])))
        at += 2 + ndim
    return tuple(shapes)


def _device_name(device: int) -> str:
    return _core.device_name(device)


def summary_of_shapes(event: Event) -> str:
    """ "float32[4, 5] float32[5, 3]"."""
    return " ".join(f"{dtype}{list(shape)}" for dtype, shape in event.shapes)


def as_dict(event: Event) -> dict[str, Any]:
    """What traces show when an event is clicked on."""
    if not (event.shapes or event.stack or event.bytes or event.backward or event.failed):
        return {} if event.memory is None else {"memory": event.memory}
    shown: dict[str, Any] = {}
    if event.shapes:
        shown["shapes"] = summary_of_shapes(event)
    if event.stack:
        shown["stack"] = "\n".join(f"{file}:{line} {name}" for file, line, name in event.stack)
    if event.bytes:
        shown["bytes"] = event.bytes
    if event.memory is not None:
        shown["memory"] = event.memory
    if event.backward:
        shown["backward"] = True
    if event.failed:
        shown["failed"] = True
    return shown
