# SPDX-License-Identifier: Apache-2.0
"""Observers: the range of what flows through a place in a network, and what steps of 8 bits suit it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import tenon
from tenon import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

LEVELS = 255  # of uint8, from the smallest to the largest code
_BINS = 4096


class Steps(NamedTuple):
    """Code `c` of 0 to 255 stands for `(c - zero_point) * scale`."""

    scale: float
    zero_point: int


def steps_of(low: float, high: float) -> Steps:
    """The steps that cover `low` to `high` and have 0 among them, as padding and relu give it."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / LEVELS
    if scale == 0.0:
        return Steps(1.0, 0)
    return Steps(scale, int(min(max(round(-low / scale), 0), LEVELS)))


class Observer:
    """Base class: `see` each tensor, then ask for `range`. `where` is named in errors."""

    where = "?"

    def __init__(self) -> None:
        self.count = 0

    def see(self, x: Tensor) -> None:
        if x.numel():
            low, high = float(x.min()), float(x.max())
            if not -np.inf < low <= high < np.inf:
                raise ValueError(
                    f"observer of {self.where!r}: expected finite numbers, got {low} to {high}"
                )
            self.count += 1
            self._see(x, low, high)

    def range(self) -> tuple[float, float]:
        """The smallest and the largest number that a code must stand for."""
        if not self.count:
            raise ValueError(
                f"observer of {self.where!r}: it has seen nothing; run the observed module on "
                "batches that reach this layer, or name the layer in `keep`"
            )
        return self._range()

    def steps(self) -> Steps:
        return steps_of(*self.range())

    def _see(self, x: Tensor, low: float, high: float) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _see()")

    def _range(self) -> tuple[float, float]:
        raise NotImplementedError(f"{type(self).__name__} must define _range()")


class MinMax(Observer):
    """All that was ever seen."""

    low = high = 0.0

    def _see(self, x: Tensor, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def _range(self) -> tuple[float, float]:
        return self.low, self.high


class MovingAverage(Observer):
    """Averages of the ends of batches, of which the newest has the weight `momentum`."""

    low = high = 0.0

    def __init__(self, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum

    def _see(self, x: Tensor, low: float, high: float) -> None:
        weight = 1.0 if self.count == 1 else self.momentum
        self.low += weight * (low - self.low)
        self.high += weight * (high - self.high)

    def _range(self) -> tuple[float, float]:
        return self.low, self.high


class _Histogram(Observer):
    """Counts in equal bins around 0, whose range doubles when a number lies outside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reach = 0.0
        self.counts = np.zeros(_BINS)

    def _see(self, x: Tensor, low: float, high: float) -> None:
        largest = max(-low, high, float(np.finfo(np.float32).tiny))
        if self.reach == 0.0:
            self.reach = largest
        while self.reach < largest:
            pairs = self.counts.reshape(-1, 2).sum(1)
            self.counts = np.pad(pairs, _BINS // 4)
            self.reach *= 2
        numbers = x.detach().to("cpu").to(tenon.float32).numpy()
        self.counts += np.histogram(numbers, _BINS, (-self.reach, self.reach))[0]

    @property
    def edges(self) -> np.ndarray:
        return np.linspace(-self.reach, self.reach, _BINS + 1)

    def ends(self) -> tuple[float, float]:
        """The outer edges of the bins that hold something."""
        filled = np.flatnonzero(self.counts)
        return float(self.edges[filled[0]]), float(self.edges[filled[-1] + 1])


class Percentile(_Histogram):
    """The range that holds `percentage` of all numbers; as many lie below it as above."""

    def __init__(self, percentage: float = 99.99) -> None:
        if not 0 < percentage <= 100:
            raise ValueError(
                f"Percentile: expected a percentage above 0 and up to 100, got {percentage}"
            )
        super().__init__()
        self.percentage = percentage

    def _range(self) -> tuple[float, float]:
        total = self.counts.sum()
        rest = total * (1 - self.percentage / 100) / 2
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        low = self.edges[np.searchsorted(below, rest, side="right") - 1]
        high = self.edges[np.searchsorted(below, total - rest, side="left")]
        return float(low), float(high)


class MeanSquaredError(_Histogram):
    """The range, among `tries` that are parts of all that was seen, whose rounding and clipping has the
    smallest squared error."""

    def __init__(self, tries: int = 80) -> None:
        if tries < 1:
            raise ValueError(f"MeanSquaredError: expected at least 1 try, got {tries}")
        super().__init__()
        self.tries = tries

    def _range(self) -> tuple[float, float]:
        low, high = self.ends()
        centres = (self.edges[:-1] + self.edges[1:]) / 2
        best = (np.inf, low, high)
        for part in np.linspace(1, 0.2, self.tries):
            scale, zero = steps_of(part * low, part * high)
            codes = np.clip(np.round(centres / scale) + zero, 0, LEVELS)
            error = float((self.counts * ((codes - zero) * scale - centres) ** 2).sum())
            best = min(best, (error, part * low, part * high))
        return best[1], best[2]


OBSERVERS: dict[str, Callable[[], Observer]] = {
    "minmax": MinMax,
    "moving_average": MovingAverage,
    "percentile": Percentile,
    "mse": MeanSquaredError,
}


def make_observer(kind: str | Callable[[], Observer], where: str) -> Observer:
    """An observer of its name or of what makes one, such as `lambda: Percentile(99.9)`."""
    if isinstance(kind, str):
        if kind not in OBSERVERS:
            raise ValueError(
                f"expected an observer named {', '.join(map(repr, OBSERVERS))} or a function that "
                f"makes one, got {kind!r}"
            )
        kind = OBSERVERS[kind]
    observer = kind()
    if not isinstance(observer, Observer):
        raise TypeError(
            f"expected a function that makes an Observer, got one that makes a "
            f"{type(observer).__name__}"
        )
    observer.where = where
    return observer
