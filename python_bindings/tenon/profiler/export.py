# SPDX-License-Identifier: Apache-2.0
"""Traces for other programs."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections import Counter
from os import PathLike
from typing import Any

from tenon import _core

from .events import Event, Frame, Memory, as_dict
from .protobuf import field
from .scope import all_scopes


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
_TYPE, _NAME_IID, _CATEGORY_IID, _TRACK_UUID, _ANNOTATION = 9, 10, 3, 11, 4
_SLICE_BEGIN, _SLICE_END = 1, 2
# What the compiled half, which writes the host's track and the counters of memory, leaves to others.
_DEVICE_SEQUENCE, _PROCESS_UUID, _FIRST_UUID = 2, 1, 1 << 20


def write_perfetto(
    path: str | PathLike[str],
    records: _core.CallRecords | None,
    frames: dict[int, tuple[Frame, ...]],
    device_events: list[Event],
) -> None:
    """Perfetto's protobuf: names are written once and referred to by number."""
    stacks = {
        number: "\n".join(f"{file}:{line} {name}" for file, line, name in stack)
        for number, stack in frames.items()
        if stack
    }
    with open(path, "wb") as file:
        if records is not None:
            file.write(
                records.perfetto(all_scopes(), stacks, os.getpid(), threading.get_native_id())
            )
        if device_events:
            writer = _DeviceTracks()
            for track in _tracks(device_events):
                writer.add_track(track, [event for event in device_events if event.track == track])
            file.write(writer.trace())


class _DeviceTracks:
    """Packets of the tracks of devices, which have thousands of events and not millions."""

    def __init__(self) -> None:
        self._packets = [field(_SEQUENCE, _DEVICE_SEQUENCE) + field(_FLAGS, _STATE_CLEARED)]
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._next_uuid = _FIRST_UUID

    def add_track(self, name: str, events: list[Event]) -> None:
        uuid = self._next_uuid
        self._next_uuid += 1
        track = field(1, uuid) + field(5, _PROCESS_UUID) + field(2, name)
        self._packets.append(field(_DESCRIPTOR, track) + field(_SEQUENCE, _DEVICE_SEQUENCE))
        end = self._after_time(field(_TYPE, _SLICE_END) + field(_TRACK_UUID, uuid))
        open_ = list[int]()
        for event in events:
            while open_ and open_[-1] <= event.begin_ns:
                self._add(open_.pop(), end)
            self._add(event.begin_ns, self._begin(event, uuid))
            open_.append(event.end_ns)
        while open_:
            self._add(open_.pop(), end)

    def trace(self) -> bytes:
        return b"".join(field(_PACKET, packet) for packet in self._packets)

    def _begin(self, event: Event, uuid: int) -> bytes:
        """The packet without its time."""
        interned = b""
        name, is_new = _intern(self._names, event.name)
        if is_new:
            interned += field(2, field(1, name) + field(2, event.name))
        category, is_new = _intern(self._categories, event.kind)
        if is_new:
            interned += field(1, field(1, category) + field(2, event.kind))
        fields = field(_TYPE, _SLICE_BEGIN) + field(_TRACK_UUID, uuid)
        fields += field(_NAME_IID, name) + field(_CATEGORY_IID, category)
        for label, value in as_dict(event).items():
            fields += field(_ANNOTATION, field(10, label) + field(6, str(value)))
        packet = self._after_time(fields)
        return packet + field(_INTERNED, interned) if interned else packet

    @staticmethod
    def _after_time(track_event: bytes) -> bytes:
        fields = field(_SEQUENCE, _DEVICE_SEQUENCE) + field(_TRACK_EVENT, track_event)
        return fields + field(_FLAGS, _NEEDS_STATE)

    def _add(self, time: int, rest: bytes) -> None:
        self._packets.append(field(_TIMESTAMP, time) + rest)


def _intern(known: dict[str, int], text: str) -> tuple[int, bool]:
    """Its number, and whether it is new."""
    number = known.get(text)
    if number is not None:
        return number, False
    known[text] = len(known) + 1
    return known[text], True


# Categories of PyTorch's traces, by kind.
_TORCH_KINDS = {
    "operator": "cpu_op",
    "scope": "user_annotation",
    "step": "user_annotation",
    "module": "python_function",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "fill": "gpu_memset",
}


def write_tensorboard(folder: str | PathLike[str], worker: str, events: list[Event]) -> str:
    """A trace as torch-tb-profiler reads it: `<worker>.<milliseconds>.pt.trace.json.gz`. Returns its path."""
    process = os.getpid()
    tracks = {track: number for number, track in enumerate(_tracks(events))}
    shown: list[dict[str, Any]] = []
    calls: dict[Event, int] = {}  # of modules
    modules: dict[str, int] = {}
    for event in events:
        arguments: dict[str, Any] = {}
        if event.shapes:
            arguments["Input Dims"] = [list(shape) for _, shape in event.shapes]
            arguments["Input type"] = [dtype for dtype, _ in event.shapes]
        if event.stack:
            arguments["Call stack"] = ";".join(
                f"{file}({line}): {name}" for file, line, name in event.stack
            )
        name = event.name
        if event.kind == "step":
            name = "ProfilerStep#" + name.removeprefix("step ")
        elif event.kind == "module":
            name = "nn.Module: " + (name or "model")
            calls[event] = arguments["Python id"] = len(calls)
            arguments["Python module id"] = modules.setdefault(name, len(modules))
            parent = event.parent
            while parent is not None and parent.kind != "module":
                parent = parent.parent
            if parent is not None:
                arguments["Python parent id"] = calls[parent]
        elif event.track != "host":
            arguments |= {"device": 0, "stream": tracks[event.track], "bytes": event.bytes}
        shown.append(
            {
                "ph": "X",
                "cat": _TORCH_KINDS.get(event.kind, event.kind),
                "name": name,
                "pid": process if event.track == "host" else 0,
                "tid": tracks[event.track],
                "ts": event.begin_ns / 1000,
                "dur": event.duration_ns / 1000,
                "args": arguments,
            }
        )
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{worker}.{time.time_ns() // 1_000_000}.pt.trace.json.gz")
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [], "traceEvents": shown}, file)
    return path


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
