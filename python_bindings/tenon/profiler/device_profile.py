# SPDX-License-Identifier: Apache-2.0
"""Profiles: what a device ran when, by its own clock."""

from __future__ import annotations

import json
from os import PathLike
from typing import NamedTuple

from tenon import _core

_KINDS = ("kernel", "copy", "fill")
_running: set[_core.device] = set()  # devices: their records go to the profiler that drains them


class Record(NamedTuple):
    """One piece of work. Times are nanoseconds of the host's monotonic clock (time.monotonic_ns)."""

    name: str
    kind: str  # "kernel", "copy" or "fill"
    begin_ns: int
    end_ns: int
    bytes: int  # moved by copies and fills
    stream: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


class Total(NamedTuple):
    """All work of one name."""

    name: str
    kind: str
    calls: int
    total_ns: int
    bytes: int


class device_profile:
    """Record what a device does inside a block.

    with tenon.profiler.device_profile("acme") as p:
        model(x)
    print(p)                # a table: where the time went
    p.save("trace.json")    # for chrome://tracing or ui.perfetto.dev
    """

    def __init__(self, device: _core.device | str | None = None) -> None:
        self._profile = _core.Profile(device)
        self._pairs: list[tuple[int, int]] = []
        self._raw: list[tuple[int, str, int, int, int, int]] = []

    @property
    def device(self) -> _core.device:
        return self._profile.device

    def __enter__(self) -> device_profile:
        if self.device in _running:
            raise RuntimeError(f"{self.device} is being profiled already; one profile at a time")
        self._pairs, self._raw = [self._profile.clock()], []
        self._profile.start()
        _running.add(self.device)
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.collect()
        finally:
            _running.discard(self.device)
            self._profile.stop()
        self._pairs.append(self._profile.clock())

    def collect(self) -> None:
        """Wait for the device and fetch what it has recorded so far. Devices keep a limited number of
        records, so call this now and then in a long run."""
        _core.synchronize(self.device)
        self._raw += self._profile.drain()

    @property
    def records(self) -> list[Record]:
        """Everything recorded, oldest first."""
        to_host = _clock_map(self._pairs)
        return [
            Record(
                name,
                _KINDS[kind] if kind < len(_KINDS) else f"kind {kind}",
                to_host(begin),
                to_host(end),
                nbytes,
                stream,
            )
            for kind, name, begin, end, nbytes, stream in self._raw
        ]

    def total(self) -> list[Total]:
        """The records summed up by name, what took longest first."""
        sums: dict[tuple[str, str], tuple[int, int, int]] = {}
        for record in self.records:
            calls, time, nbytes = sums.get((record.name, record.kind), (0, 0, 0))
            sums[record.name, record.kind] = (
                calls + 1,
                time + record.duration_ns,
                nbytes + record.bytes,
            )
        totals = [Total(*key, *value) for key, value in sums.items()]
        return sorted(totals, key=lambda total: -total.total_ns)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the records as a Chrome trace (JSON)."""
        process = str(self.device)
        events = [
            {
                "name": record.name,
                "cat": record.kind,
                "ph": "X",
                "ts": record.begin_ns / 1000,
                "dur": record.duration_ns / 1000,
                "pid": process,
                "tid": f"stream {record.stream:#x}" if record.stream else "synchronous",
                "args": {"bytes": record.bytes} if record.bytes else {},
            }
            for record in self.records
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        totals = self.total()
        if not totals:
            return f"{self.device} recorded no work"
        whole = sum(total.total_ns for total in totals) or 1
        rows = [("name", "kind", "calls", "total ms", "mean us", "share", "GB/s")]
        for total in totals:
            rate = f"{total.bytes / total.total_ns:.2f}" if total.bytes and total.total_ns else ""
            rows.append(
                (
                    total.name,
                    total.kind,
                    str(total.calls),
                    f"{total.total_ns / 1e6:.3f}",
                    f"{total.total_ns / total.calls / 1e3:.1f}",
                    f"{100 * total.total_ns / whole:.1f}%",
                    rate,
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if column < 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )


def _clock_map(pairs):
    """From device nanoseconds to the host's, through one or two moments seen on both clocks."""
    if not pairs:
        return lambda time: time
    (host, device), (last_host, last_device) = pairs[0], pairs[-1]
    if last_device <= device:
        return lambda time: time - device + host
    rate = (last_host - host) / (last_device - device)
    return lambda time: host + round((time - device) * rate)
