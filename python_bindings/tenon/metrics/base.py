# SPDX-License-Identifier: Apache-2.0
"""What metrics share, and means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import tenon
from tenon import Tensor

M = TypeVar("M", bound="Metric")


class Metric:
    """Counts that update() adds to and compute() reads. Merging adds the counts of another one."""

    def __init__(self) -> None:
        self.counts: dict[str, Tensor] = {}

    def update(self, *args: Any, **more: Any) -> None:
        """Count a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define update()")

    def compute(self) -> Any:
        """The value so far."""
        raise NotImplementedError(f"{type(self).__name__} must define compute()")

    def reset(self) -> None:
        """Forget all batches."""
        self.counts = {}

    def merge(self: M, other: Metric | Mapping[str, Tensor]) -> M:
        """Add the batches of another metric of the same kind, or of its state_dict()."""
        if isinstance(other, Metric) and type(other) is not type(self):
            raise TypeError(
                f"{type(self).__name__}.merge: expected a {type(self).__name__}, got "
                f"{type(other).__name__}"
            )
        counts = other.counts if isinstance(other, Metric) else other
        for name, count in counts.items():
            self._add(name, count)
        return self

    def _add(self, name: str, count: Tensor) -> None:
        before = self.counts.get(name)
        self.counts[name] = count if before is None else before + count.to(before.device)

    def _sum(self, name: str) -> Tensor:
        if name not in self.counts:
            raise ValueError(
                f"{type(self).__name__}.compute: expected a batch first; call update()"
            )
        return self.counts[name]

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self.counts)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.counts = dict(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.compute() if self.counts else 'no batches'})"


class Mean(Metric):
    """The mean of all values, for example of the loss; `weight` counts one value several times."""

    def update(self, value: Any, weight: float = 1.0) -> None:
        with tenon.no_grad():
            if not isinstance(value, Tensor):
                value = tenon.tensor(value, dtype=tenon.float64)
            value = value.detach().cast(tenon.float64)
            self._add("total", tenon.sum(value) * weight)
            self._add("count", tenon.tensor(weight * value.numel(), dtype=tenon.float64))

    def compute(self) -> float:
        count = self._sum("count").item()
        if not count:
            raise ValueError(f"{type(self).__name__}.compute: expected values that count, got none")
        return self._sum("total").item() / count


class _MeanError(Mean):
    def _difference(self, prediction: Tensor, target: Tensor) -> Tensor:
        """In float64: unsigned integers would wrap around, and squares of float16 overflow."""
        if tuple(prediction.shape) != tuple(target.shape):
            raise ValueError(
                f"{type(self).__name__}.update: expected prediction and target of one shape, got "
                f"{tuple(prediction.shape)} and {tuple(target.shape)}"
            )
        return prediction.detach().cast(tenon.float64) - target.detach().cast(tenon.float64)


class MeanSquaredError(_MeanError):
    """The mean of squared differences."""

    def update(self, prediction: Tensor, target: Tensor) -> None:  # type: ignore[override]
        super().update(tenon.square(self._difference(prediction, target)))


class MeanAbsoluteError(_MeanError):
    """The mean of absolute differences."""

    def update(self, prediction: Tensor, target: Tensor) -> None:  # type: ignore[override]
        super().update(tenon.abs(self._difference(prediction, target)))


class Perplexity(Mean):
    """exp(mean cross-entropy) of logits [..., classes]; targets of `ignore_index` do not count."""

    def __init__(self, ignore_index: int = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def update(self, logits: Tensor, target: Tensor) -> None:  # type: ignore[override]
        with tenon.no_grad():
            flat = logits.detach().reshape([-1, logits.shape[-1]])
            target = target.reshape([-1])
            loss = tenon.cross_entropy(
                flat, target, ignore_index=self.ignore_index, reduction="sum"
            )
            self._add("total", loss.cast(tenon.float64))
            self._add("count", tenon.sum(target != self.ignore_index).cast(tenon.float64))

    def compute(self) -> float:
        return math.exp(super().compute())
