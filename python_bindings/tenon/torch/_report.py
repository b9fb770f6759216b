# SPDX-License-Identifier: Apache-2.0
"""What became of the models that were loaded."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field

_MOST = 64  # reports that are kept


@dataclass
class Report:
    """One load: what it read, and what it made of that."""

    name: str
    kinds: Counter[str] = field(default_factory=Counter)  # calls of each ATen kind
    steps: int = 0  # of the program, or of all parts that became programs
    programs: int = 0  # of a graph of torch.compile; 0 where all of it stayed with PyTorch
    leaves: int = 0
    shared_bytes: int = 0  # of weights that the program reads in PyTorch's memory
    copied_bytes: int = (
        0  # of weights whose memory holds other numbers than the weights (conjugates)
    )
    writes: list[str] = field(default_factory=list)  # buffers and inputs that each run writes
    converted: Counter[str] = field(
        default_factory=Counter
    )  # results cast to the dtype PyTorch gives, by kind
    restrided: int = 0  # results that runs have copied into the strides PyTorch promises
    refused: dict[str, str] = field(default_factory=dict)  # kind, and the reason

    def __str__(self) -> str:
        calls = sum(self.kinds.values())
        if self.refused and not self.programs:
            kinds = "".join(f"\n    {kind}: {reason}" for kind, reason in self.refused.items())
            return f"{self.name}: refused, {len(self.refused)} of {len(self.kinds)} kinds of calls{kinds}"
        text = (
            f"{self.name}: {calls} calls of {len(self.kinds)} kinds became {self.steps} steps; "
            f"{self.leaves} tensors of {self.shared_bytes} bytes are shared with PyTorch"
        )
        if self.copied_bytes:
            text += f"; {self.copied_bytes} bytes were copied"
        if self.refused:
            kinds = ", ".join(f"{kind} ({reason})" for kind, reason in self.refused.items())
            text += f"; of them stay with PyTorch, around {self.programs} programs: {kinds}"
        if self.writes:
            text += f"; each run writes {', '.join(self.writes)}"
        if self.converted:
            listed = ", ".join(f"{kind} ({count})" for kind, count in self.converted.items())
            text += f"; results were cast to PyTorch's dtype: {listed}"
        return text


@dataclass
class DeviceReport:
    """What calls on the device became, in this process. Calls that are told once and run from their tape are counted once."""

    kind: str
    operators: Counter[str] = field(default_factory=Counter)  # calls told in operators
    decomposed: Counter[str] = field(default_factory=Counter)  # calls that PyTorch took apart
    on_cpu: Counter[str] = field(default_factory=Counter)  # calls that ran on the CPU
    copied_bytes: int = 0  # for these, to the CPU and back
    reasons: dict[str, str] = field(default_factory=dict)  # why the last one did, by call

    def count_on_cpu(self, name: str, copied: int, reason: str) -> None:
        self.on_cpu[name] += 1
        self.copied_bytes += copied
        self.reasons[name] = reason

    def __str__(self) -> str:
        text = (
            f"device {self.kind!r}: {len(self.operators)} calls are operators, {len(self.decomposed)} were taken apart by PyTorch, "
            f"{sum(self.on_cpu.values())} calls of {len(self.on_cpu)} kinds ran on the CPU, with {self.copied_bytes} bytes copied"
        )
        for name, count in self.on_cpu.most_common():
            text += f"\n  {name}, {count} times: {self.reasons[name]}"
        return text


_lock = threading.Lock()
_device: DeviceReport | None = None
_reports: deque[Report] = deque(maxlen=_MOST)


def remember(entry: Report) -> None:
    with _lock:
        _reports.append(entry)


def remember_device(entry: DeviceReport) -> None:
    global _device
    _device = entry


class Reports(list[Report]):
    """The last loads, oldest first; printing it prints one line for each, and what ran on the device."""

    device: DeviceReport | None = None  # of `tenon.torch.device`

    def __str__(self) -> str:
        lines = [str(each) for each in (*self, self.device) if each is not None]
        return "\n".join(lines) or "nothing was loaded from PyTorch"


def report() -> Reports:
    """What `tenon.torch.load` and `torch.compile` have made of the last 64 models and graphs of this process, those that were
    refused included; `.device` says what calls on the device became."""
    with _lock:
        reports = Reports(_reports)
    reports.device = _device
    return reports
