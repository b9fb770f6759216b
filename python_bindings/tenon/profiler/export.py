# SPDX-License-Identifier: Apache-2.0
"""Traces for other programs."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from os import PathLike
from typing import Any

from .events import Event, Memory, as_dict
from .protobuf import field, varint


def write_chrome_trace(
    path: str | PathLike[str], events: list[Event], memory: list[Memory]
) -> None:
    """Trace Event Format, times in microseconds."""
    process = os.getpid()
    tracks = {track: number for number, track in enumerate(_tracks(events))}
    shown: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": process, "tid": number, "args": {"name": track}}
        for track, number in tracks.items()
    ]
    for event in events:
        entry = {
            "name": event.name,
            "cat": event.kind,
            "ph": "X",
            "ts": event.begin_ns / 1000,
            "dur": event.duration_ns / 1000,
            "pid": process,
            "tid": tracks[event.track],
        }
        if arguments := as_dict(event):
            entry["args"] = arguments
        shown.append(entry)
    shown += [
        {
            "name": f"memory {moment.device}",
            "ph": "C",
            "ts": moment.time_ns / 1000,
            "pid": process,
            "args": {"bytes": moment.bytes},
        }
        for moment in memory
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": shown, "displayTimeUnit": "ns"}, file)


# Field numbers of perfetto_trace.proto.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_TYPE, _NAME_IID, _CATEGORY_IID, _TRACK_UUID, _COUNTER, _ANNOTATION = 9, 10, 3, 11, 30, 4
_SLICE_BEGIN, _SLICE_END, _COUNTER_TYPE = 1, 2, 4
_TIME_KEY = varint(_TIMESTAMP << 3)


def write_perfetto(path: str | PathLike[str], events: list[Event], memory: list[Memory]) -> None:
    """Perfetto's protobuf: names are written once and referred to by number."""
    writer = _PerfettoWriter()
    for track in _tracks(events):
        writer.add_track(track, [event for event in events if event.track == track])
    for device in sorted({moment.device for moment in memory}):
        writer.add_counter(
            f"memory {device}",
            [(moment.time_ns, moment.bytes) for moment in memory if moment.device == device],
        )
    with open(path, "wb") as file:
        file.write(writer.trace())


class _PerfettoWriter:
    def __init__(self) -> None:
        self._packets: list[bytes] = []
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._begins: dict[tuple[int, str, str], bytes] = {}  # by track, name, category
        self._next_uuid = 1
        self._process = self._describe(field(3, field(1, os.getpid()) + field(6, "Tenon")))
        self._packets.append(field(_SEQUENCE, 1) + field(_FLAGS, _STATE_CLEARED))

    def add_track(self, name: str, events: list[Event]) -> None:
        thread = field(1, os.getpid()) + field(2, threading.get_native_id()) + field(5, name)
        if name == "host":
            uuid = self._describe(field(5, self._process) + field(4, thread))
        else:
            uuid = self._describe(field(5, self._process) + field(2, name))
        end = self._after_time(field(_TYPE, _SLICE_END) + field(_TRACK_UUID, uuid))
        add, open_ = self._add, list[int]()
        for event in events:
            while open_ and open_[-1] <= event.begin_ns:
                add(open_.pop(), end)
            add(event.begin_ns, self._begin(event, uuid))
            open_.append(event.end_ns)
        while open_:
            add(open_.pop(), end)

    def add_counter(self, name: str, values: list[tuple[int, int]]) -> None:
        uuid = self._describe(field(5, self._process) + field(2, name) + field(8, b""))
        for time, value in values:
            fields = field(_TYPE, _COUNTER_TYPE) + field(_TRACK_UUID, uuid)
            self._add(time, self._after_time(fields + field(_COUNTER, value)))

    def trace(self) -> bytes:
        head = varint(_PACKET << 3 | 2)
        return b"".join(head + varint(len(packet)) + packet for packet in self._packets)

    def _describe(self, fields: bytes) -> int:
        uuid = self._next_uuid
        self._next_uuid += 1
        self._packets.append(field(_DESCRIPTOR, field(1, uuid) + fields) + field(_SEQUENCE, 1))
        return uuid

    def _begin(self, event: Event, uuid: int) -> bytes:
        """The packet without its time, which events of one name share if they have no details."""
        key = uuid, event.name, event.kind
        details = as_dict(event)
        if not details and key in self._begins:
            return self._begins[key]
        interned = b""
        name, is_new = _intern(self._names, event.name)
        if is_new:
            interned += field(2, field(1, name) + field(2, event.name))
        category, is_new = _intern(self._categories, event.kind)
        if is_new:
            interned += field(1, field(1, category) + field(2, event.kind))
        fields = field(_TYPE, _SLICE_BEGIN) + field(_TRACK_UUID, uuid)
        fields += field(_NAME_IID, name) + field(_CATEGORY_IID, category)
        for label, value in details.items():
            fields += field(_ANNOTATION, field(10, label) + field(6, str(value)))
        packet = self._after_time(fields)
        if not details:
            self._begins[key] = packet
        return packet + field(_INTERNED, interned) if interned else packet

    @staticmethod
    def _after_time(track_event: bytes) -> bytes:
        return field(_SEQUENCE, 1) + field(_TRACK_EVENT, track_event) + field(_FLAGS, _NEEDS_STATE)

    def _add(self, time: int, rest: bytes) -> None:
        self._packets.append(_TIME_KEY + varint(time) + rest)


def _intern(known: dict[str, int], text: str) -> tuple[int, bool]:
    """Its number, and whether it is new."""
    number = known.get(text)
    if number is not None:
        return number, False
    known[text] = len(known) + 1
    return known[text], True


def write_stacks(path: str | PathLike[str], events: list[Event]) -> None:
    """`outer;inner;operator nanoseconds`, a line for each stack: the format of flamegraph.pl."""
    sums: Counter[str] = Counter()
    for event in events:
        if event.stack:
            frames = [
                f"{name} ({os.path.basename(file)}:{line})" for file, line, name in event.stack
            ]
            sums[";".join([*reversed(frames), event.name])] += event.self_ns
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{stack} {weight}\n" for stack, weight in sorted(sums.items()))


def _tracks(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event.track for event in events))
