# SPDX-License-Identifier: Apache-2.0
"""What a table is: the same on all workers, and what servers are told of it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import tenon
from tenon import _core

MODES = ("sync", "async", "geo")
_ALL, _PROBABILITY, _SCORE = range(3)  # TENON_TABLE_ENTRY_*


@dataclass(frozen=True)
class ProbabilityEntry:
    """An id gets a row at each push with this probability."""

    probability: float

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(
                f"ProbabilityEntry: expected a probability above 0 and up to 1, got {self.probability}"
            )


@dataclass(frozen=True)
class CountEntry:
    """An id gets a row when it was shown for the `count`th time."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"CountEntry: expected a count of 1 or more, got {self.count}")


@dataclass(frozen=True)
class ShowClickEntry:
    """An id gets a row when `show * shows + click * clicks` reaches the threshold."""

    threshold: float
    show: float = 0.1
    click: float = 1.0


def check_name(name: Any) -> None:
    """Servers name folders by it."""
    is_text = isinstance(name, str) and name != "" and not name.startswith(".")
    if not is_text or not all(c.isalnum() or c in "-_." for c in name):
        raise ValueError(
            f"Table: expected a name of letters, digits, '-', '_' and '.', got {name!r:.100}"
        )


def check_change(what: Any, arguments: list[Any]) -> None:
    """As Settings.check_push, of what one worker orders for all."""
    if what == "shrink":
        days, score = arguments
        if type(days) is not int or not 0 <= days < 1 << 32:
            raise ValueError(
                f"Table.shrink: expected unseen_days from 0 to {(1 << 32) - 1}, got {days!r:.40}"
            )
        if type(score) not in (int, float) or math.isnan(score):
            raise ValueError(f"Table.shrink: expected a number as score, got {score!r:.40}")
    elif what != "day_end" or arguments:
        raise ValueError(f"Table: {what!r:.40} is no change that servers know")


def _check_tensor(name: str, x: Any, dtype: tenon.dtype, shape: tuple[int, ...] | None) -> None:
    is_right = isinstance(x, tenon.Tensor) and x.dtype == dtype
    if not is_right or (len(x.shape) != 1 if shape is None else tuple(x.shape) != shape):
        got = f"{x.dtype.name}{list(x.shape)}" if isinstance(x, tenon.Tensor) else type(x).__name__
        expected = "[n]" if shape is None else list(shape)
        raise ValueError(f"Table: expected {name} as {dtype.name}{expected}, got {got}")


Entry = ProbabilityEntry | CountEntry | ShowClickEntry
_ENTRIES = {kind.__name__: kind for kind in (ProbabilityEntry, CountEntry, ShowClickEntry)}


@dataclass(frozen=True)
class Settings:
    """`optimizer` is the name of a class of tenon.optim, `options` what it is made with."""

    dim: int
    optimizer: str
    options: dict[str, Any] = field(default_factory=dict)
    mode: str = "sync"
    staleness: int | None = None  # of mode async: pushes that a worker may be ahead of the slowest
    entry: Entry | None = None
    initial_range: float = 0.01
    seed: int = 0
    decay: float = 1.0
    show: float = 0.1  # weights of the score by which rows are removed
    click: float = 1.0
    hot_rows: int = 0

    def __post_init__(self) -> None:
        def refuse(text: str) -> ValueError:
            return ValueError(f"Table: expected {text}")

        if self.dim < 1:
            raise refuse(f"dim of 1 or more, got {self.dim}")
        if self.mode not in MODES:
            raise refuse(f"mode 'sync', 'async' or 'geo', got {self.mode!r}")
        if self.staleness is not None and (self.mode != "async" or self.staleness < 0):
            raise refuse(
                f"staleness of 0 or more with mode 'async', got {self.staleness} with {self.mode!r}"
            )
        if not 0.0 < self.decay <= 1.0:
            raise refuse(f"a decay above 0 and up to 1, got {self.decay}")
        if not (math.isfinite(self.initial_range) and self.initial_range >= 0):
            raise refuse(f"an initial_range of 0 or more, got {self.initial_range}")
        if self.hot_rows < 0:
            raise refuse(f"hot_rows of 0, for all, or more, got {self.hot_rows}")
        if self.mode == "geo" and self.entry is not None:
            raise refuse("no entry with mode 'geo', in which workers have rows before servers do")

    @property
    def counts_uses(self) -> bool:
        """Whether servers need to know how often ids were shown and clicked."""
        if self.mode == "geo":  # They see sums of many pushes.
            return False
        return isinstance(self.entry, (CountEntry, ShowClickEntry)) or self.decay != 1.0

    def check_push(self, ids: Any, gradients: Any, shows: Any, clicks: Any) -> None:
        """Before a server keeps it: what is in its log is carried out whenever the server is started again."""
        _check_tensor("ids", ids, tenon.int64, None)
        count = ids.numel()
        _check_tensor("gradients", gradients, tenon.float32, (count, self.dim))
        for name, uses in (("shows", shows), ("clicks", clicks)):
            if uses is not None:
                _check_tensor(name, uses, tenon.float32, (count,))

    def words(self) -> dict[str, Any]:
        """As plain values."""
        words = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.entry is not None:
            words["entry"] = [type(self.entry).__name__, dataclasses.asdict(self.entry)]
        return words

    @staticmethod
    def of(words: dict[str, Any]) -> Settings:
        given = dict(words)
        if given.get("entry") is not None:
            name, fields = given["entry"]
            given["entry"] = _ENTRIES[name](**fields)
        return Settings(**given)

    def make(
        self, state_width: int, initial_state: float, cold_folder: str | None = None
    ) -> _core.Table:
        """A table without rows."""
        kind, threshold, show, click = _ALL, 0.0, self.show, self.click
        if isinstance(self.entry, ProbabilityEntry):
            kind, threshold = _PROBABILITY, self.entry.probability
        elif isinstance(self.entry, CountEntry):
            kind, threshold, show, click = _SCORE, float(self.entry.count), 1.0, 0.0
        elif isinstance(self.entry, ShowClickEntry):
            kind, threshold = _SCORE, self.entry.threshold
            show, click = self.entry.show, self.entry.click
        return _core.Table(
            self.dim,
            state_width,
            kind,
            self.seed,
            self.initial_range,
            initial_state,
            threshold,
            show,
            click,
            self.decay,
            self.hot_rows,
            cold_folder,
        )
