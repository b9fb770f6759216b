# SPDX-License-Identifier: Apache-2.0
"""What Tenon's speed is held against: every target is a ratio or a share measured within one run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable


def to(peer: str) -> Callable[[dict], float | None]:
    """Tenon's time to a peer's, the median over the rounds."""
    return lambda row: row.get("ratios", {}).get(peer, {}).get("median")


HEAD_STARTS = ("packed",)  # peers that do a part of the work before the clock runs


def to_fastest(row: dict) -> float | None:
    """Tenon's time to that of whichever peer is fastest in the row, of those that do the same work."""
    peers = row.get("ratios", {}).items()
    return max((ratio["median"] for name, ratio in peers if name not in HEAD_STARTS), default=None)


def share(row: dict) -> float | None:
    """The rate's share of the limit, where that is what the row waits for."""
    return None if row.get("parameters", {}).get("bound") else row.get("limit", {}).get("share")


def grown_to(peer: str) -> Callable[[dict], float | None]:
    """What Tenon grew by, to what the peer did."""
    return lambda row: row["values"]["tenon"] / row["values"][peer] if "values" in row else None


def nanoseconds(row: dict) -> float | None:
    return row.get("median")


def above(other: str) -> Callable[[dict], float]:
    """Nanoseconds more than another row's."""
    return lambda row: row["median"] - row["medians"][other]


def times(other: str) -> Callable[[dict], float | None]:
    """Time to that of another row."""
    return lambda row: row["median"] / row["medians"][other] if other in row["medians"] else None


def counter(name: str, factor: float = 1.0) -> Callable[[dict], float]:
    """What a C++ benchmark counted."""
    return lambda row: factor * row["counters"][name]


def rows_of(data: dict) -> list[dict]:
    """A benchmark's rows, each with Tenon's median time in ns, and all rows' by name."""
    if "results" in data:
        rows = [dict(each) for each in data["results"]]
        for row in rows:
            if "seconds" in row:
                row["median"] = 1e9 * next(iter(row["seconds"].values()))["median"]
    else:  # Google Benchmark's
        units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
        how = re.compile(r"/(real_time|manual_time|iterations:\d+)")
        rows = [
            {
                "case": how.sub("", each["run_name"]),
                "group": "",
                "median": each["real_time"] * units[each["time_unit"]],
                "counters": each,
            }
            for each in data["benchmarks"]
            if each.get("aggregate_name") == "median"
        ]
    medians = {name_of(row): row["median"] for row in rows if "median" in row}
    return [{**row, "medians": medians} for row in rows]


def name_of(row: dict) -> str:
    return "; ".join(filter(None, (row["case"], row["group"])))


@dataclasses.dataclass(frozen=True)
class Target:
    section: str
    asked: str
    benchmark: str
    rows: str  # a regular expression for "case; group"
    value: Callable[[dict], float | None]
    at_most: float | None = None
    at_least: float | None = None

    def measured(self, data: dict) -> list[tuple[float, str]]:
        """Value and name of the rows that it is about, the worst first."""
        found = []
        for row in rows_of(data):
            name = name_of(row)
            value = self.value(row) if re.search(self.rows, name) else None
            if value is not None:
                found.append((value, name))
        return sorted(found, reverse=self.at_most is not None)

    def is_met(self, value: float) -> bool:
        return value <= self.at_most if self.at_most is not None else value >= self.at_least


VIEWS = r"^([xm]\[|m\.T|[xm]\.(reshape|transpose|permute|squeeze|unsqueeze|flatten))"
CREATION = r"^(zeros|ones|empty|tensor)"
SMALL, LARGE = r"(?i)^(mlp|lenet|lstm).*train", r"(?i)^(resnet|gpt).*train"

TARGETS = (
    Target("calls", "`x + y`, one element: at most 0.5 of NumPy", "overhead", r"^x \+ y$", to("numpy"), 0.5),
    Target("calls", "`x + y`: at most 0.1 of PyTorch", "overhead", r"^x \+ y$", to("torch"), 0.1),
    Target("calls", "views: at most 0.5 of the fastest peer", "overhead", VIEWS, to_fastest, 0.5),
    Target("calls", "creation: at most 0.5 of the fastest peer", "overhead", CREATION, to_fastest, 0.5),
    Target("calls", "`w + y`, recorded: at most 0.2 of PyTorch", "overhead", r"^w \+ y, rec", to("torch"), 0.2),
    Target("calls", "C++ `add`: at most 60 ns above a bare kernel", "benchmark_call_overhead", "^call_new_result", above("bare_kernel"), 60),
    Target("calls", "C++ `add` in place: at most 30 ns above", "benchmark_call_overhead", "^call_in_place", above("bare_kernel"), 30),
    Target("calls", "10 products, forward and backward: at most 0.1 of PyTorch", "overhead", "^10 products", to("torch"), 0.1),
    Target("memory-bound", "never slower than the fastest peer", "memory_bound", "", to_fastest, 1.0),
    Target("memory-bound", "from 10^5 elements: at least 0.9 of measured bandwidth", "memory_bound", r"00,000 elements", share, at_least=0.9),
    Target("functions", "at most 0.5 of NumPy", "transcendentals", "", to("numpy"), 0.5),
    Target("functions", "never slower than PyTorch", "transcendentals", "", to("torch"), 1.0),
    Target("products", "at least 0.95 of the fastest peer's rate", "products", "", to_fastest, 1 / 0.95),
    Target("products", "at least 0.95 of oneDNN's rate with weights rearranged beforehand", "products", "", to("packed"), 1 / 0.95),
    Target("steps", "MLP, LeNet, LSTM: at most 0.6 of the fastest peer", "training_steps", SMALL, to_fastest, 0.6),
    Target("steps", "ResNet-18, GPT-2 block: at most 0.85 of the fastest peer", "training_steps", LARGE, to_fastest, 0.85),
    Target("steps", "peak memory: at most 0.9 of PyTorch", "training_memory", "", grown_to("torch"), 0.9),
    Target("memory", "a cached block: at most 15 ns", "benchmark_allocator", "^pair<FromHost>", nanoseconds, 15),
    Target("memory", "a fresh 64 MiB result: at most 1.2 of one given", "memory", r"^x \+ y; 64 MiB", times("add(x, y, out=z); 64 MiB"), 1.2),
    Target("memory", "recorded traces: fragmentation below 5 %", "benchmark_allocator", "^(resnet|gpt)", counter("fragmentation", 100), 5),
    Target("memory", "recorded traces: no call to the driver", "benchmark_allocator", "^(resnet|gpt)", counter("driver_calls"), 0),
    Target("memory", "a block among 10^6: no dearer than malloc's", "benchmark_allocator", "^live_blocks<FromHost>/1000000", times("live_blocks<FromMalloc>/1000000"), 1.0),
    Target("threads", "a parallel region: at most 400 ns", "benchmark_thread_pool", "^hot<Pool>", nanoseconds, 400),
    Target("threads", "beside a busy process: at most 3 times as long", "benchmark_thread_pool", "^add_beside_busy_processes<Pool>/1/2", times("add_beside_busy_processes<Pool>/0/2"), 3.0),
    Target("start", "`import`: at most 0.5 of NumPy", "start", "^import", to("numpy"), 0.5),
    Target("start", "`import` and a first operation: at most 0.5 of NumPy", "start", "^first operation", to("numpy"), 0.5),
)  # fmt: skip
