# SPDX-License-Identifier: Apache-2.0
"""What Tenon's speed is held against: every target is a ratio or a share measured within one run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable


def to(peer: str) -> Callable[[dict], float | None]:
    """Tenon's time to a peer's, the median over the rounds."""
    return lambda row: row.get("ratios", {}).get(peer, {}).get("median")


def to_fastest(row: dict) -> float | None:
    """Tenon's time to that of whichever peer is fastest in the row."""
    return max((ratio["median"] for ratio in row.get("ratios", {}).values()), default=None)


def share(row: dict) -> float | None:
    """The rate's share of the limit."""
    return row.get("limit", {}).get("share")


@dataclasses.dataclass(frozen=True)
class Target:
    section: str
    asked: str
    benchmark: str
    rows: str  # a regular expression for "case; group"
    value: Callable[[dict], float | None]
    at_most: float | None = None
    at_least: float | None = None

    def measured(self, results: list[dict]) -> list[tuple[float, str]]:
        """Value and name of the rows that it is about, the worst first."""
        found = []
        for row in results:
            name = "; ".join(filter(None, (row["case"], row["group"])))
            value = self.value(row) if re.search(self.rows, name) else None
            if value is not None:
                found.append((value, name))
        return sorted(found, reverse=self.at_most is not None)

    def is_met(self, value: float) -> bool:
        return value <= self.at_most if self.at_most is not None else value >= self.at_least


VIEWS = r"^([xm]\[|m\.T|[xm]\.(reshape|transpose|permute|squeeze|unsqueeze|flatten))"
CREATION = r"^(zeros|ones|empty|tensor)"
SMALL, LARGE = r"(?i)^(mlp|lenet|lstm)", r"(?i)^(resnet|gpt)"

TARGETS = (
    Target("calls", "`x + y`, one element: at most 0.5 of NumPy", "overhead", r"^x \+ y$", to("numpy"), 0.5),
    Target("calls", "`x + y`: at most 0.1 of PyTorch", "overhead", r"^x \+ y$", to("torch"), 0.1),
    Target("calls", "views: at most 0.5 of the fastest peer", "overhead", VIEWS, to_fastest, 0.5),
    Target("calls", "creation: at most 0.5 of the fastest peer", "overhead", CREATION, to_fastest, 0.5),
    Target("calls", "`w + y`, recorded: at most 0.2 of PyTorch", "overhead", r"^w \+ y, rec", to("torch"), 0.2),
    Target("calls", "10 products, forward and backward: at most 0.1 of PyTorch", "overhead", "^10 products", to("torch"), 0.1),
    Target("memory-bound", "never slower than the fastest peer", "memory_bound", "", to_fastest, 1.0),
    Target("memory-bound", "from 10^5 elements: at least 0.9 of measured bandwidth", "memory_bound", r"00,000 elements", share, at_least=0.9),
    Target("functions", "at most 0.5 of NumPy", "transcendentals", "", to("numpy"), 0.5),
    Target("functions", "never slower than PyTorch", "transcendentals", "", to("torch"), 1.0),
    Target("products", "at least 0.95 of the fastest peer's rate", "products", "", to_fastest, 1 / 0.95),
    Target("steps", "MLP, LeNet, LSTM: at most 0.6 of the fastest peer", "training_steps", SMALL, to_fastest, 0.6),
    Target("steps", "ResNet-18, GPT-2 block: at most 0.85 of the fastest peer", "training_steps", LARGE, to_fastest, 0.85),
    Target("start", "`import`: at most 0.5 of NumPy", "start", "^import", to("numpy"), 0.5),
    Target("start", "`import` and a first operation: at most 0.5 of NumPy", "start", "^first operation", to("numpy"), 0.5),
)  # fmt: skip
