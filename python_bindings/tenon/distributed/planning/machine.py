# SPDX-License-Identifier: Apache-2.0
"""How fast a machine computes and how fast its links are, as numbers that a file holds."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from .events import Compute, TensorKind, Transfer

VERSION = 1


@dataclasses.dataclass(frozen=True)
class Link:
    """Between the ranks of a group: a call takes `alpha` seconds for each other rank, and `beta` seconds for each byte that a
    rank sends or receives, whichever is more. `calls` has both for calls that were measured by themselves."""

    size: int  # ranks of the group that was measured
    alpha: float
    beta: float
    calls: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    @staticmethod
    def of(bits_per_second: float, latency: float = 1e-5, size: int = 2) -> Link:
        """A link that was not measured."""
        if not bits_per_second > 0:
            raise ValueError(f"Link.of: expected bits_per_second above 0, got {bits_per_second}")
        return Link(size, latency, 8.0 / bits_per_second)

    def seconds(self, call: str, size: int, payload: int) -> float:
        """Of a call of `size` ranks, each of which sends or receives `payload` bytes."""
        alpha, beta = self.calls.get(call, (self.alpha, self.beta))
        return alpha * (size - 1) + beta * payload if size > 1 else 0.0


@dataclasses.dataclass
class Machine:
    """What `dist.calibrate()` measures, or what is known of a cluster that this process is no part of.

    dist.Machine(flops=50e12, bandwidth=1e12, links={"tp": Link.of(400e9), "dp": Link.of(25e9)})
    """

    flops: float  # of products, in a second
    bandwidth: float  # bytes of memory, in a second
    overhead: float = 0.0  # seconds of an operator call beside its kernel
    links: dict[str, Link] = dataclasses.field(default_factory=dict)  # by axis of a mesh, or group
    # Seconds of operator calls that were measured by themselves, by signature.
    kernels: dict[str, float] = dataclasses.field(default_factory=dict)
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)

    def seconds_of(self, event: Compute | Transfer) -> float:
        """How long an operator call or a call of a group takes."""
        if isinstance(event, Transfer):
            link = self.link_of(event.group, event.size)
            return link.seconds(event.call, event.size, max(event.sent, event.received))
        known = self.kernels.get(signature_text(event)) if self.kernels else None
        if known is None:
            known = max(event.flops / self.flops, event.bytes / self.bandwidth)
        return self.overhead + known

    def link_of(self, group: str, size: int) -> Link:
        """That of the axis, or that of all ranks."""
        if size == 1:
            return Link(1, 0.0, 0.0)
        link = self.links.get(group, self.links.get("world"))
        if link is None:
            raise ValueError(
                f"predict: expected a link of {group!r} or 'world' in the machine, got links of "
                f"{', '.join(map(repr, self.links)) or 'nothing'}; dist.calibrate(mesh) measures those of a mesh, or give "
                f"links={{{group!r}: dist.Link.of(bits_per_second=...)}}"
            )
        return link

    def save(self, file: str | os.PathLike) -> None:
        """As JSON, which `load` reads."""
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"version": VERSION, **dataclasses.asdict(self)}, out, indent=1)
            out.write("\n")

    @staticmethod
    def load(file: str | os.PathLike) -> Machine:
        try:
            with open(file, encoding="utf-8") as source:
                values = json.load(source)
            version = values.pop("version", None)
            links = {
                name: Link(**{**link, "calls": {k: (v[0], v[1]) for k, v in link["calls"].items()}})
                for name, link in values.pop("links").items()
            }
            if version == VERSION:
                return Machine(**values, links=links)
            reason = f"version {version}"
        except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"Machine.load: expected a file of version {VERSION} that dist.calibrate().save() wrote, got {file} ({reason})"
        )

    def __repr__(self) -> str:
        rows = [
            f"products    {self.flops / 1e9:10.1f} GFLOP/s",
            f"memory      {self.bandwidth / 1e9:10.1f} GB/s",
            f"a call      {self.overhead * 1e6:10.1f} us",
        ]
        for name, link in self.links.items():
            rows.append(f"{name}, {link.size} ranks")
            calls = link.calls or {"any call": (link.alpha, link.beta)}
            for call, (alpha, beta) in calls.items():
                rate = f"{1e-6 / beta:10.1f} MB/s" if beta else "no limit"
                rows.append(f"  {call:<16}{alpha * 1e6:10.1f} us a rank {rate}")
        if self.kernels:
            rows.append(f"{len(self.kernels)} operator calls measured by themselves")
        return "\n".join(rows)


def signature_text(event: Compute) -> str:
    """A key for files."""
    return f"{event.operator}({', '.join(f'{k}={_text(v)}' for k, v in event.arguments)})"


def _text(value: Any) -> str:
    if isinstance(value, TensorKind):
        strides = f":{list(value.strides)}" if value.strides else ""
        return f"{value.dtype}{list(value.shape)}{strides}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)
