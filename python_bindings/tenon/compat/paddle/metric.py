# SPDX-License-Identifier: Apache-2.0
"""paddle.metric: metrics that count batch by batch, with Paddle's methods: compute() on the device, update() of its result,
accumulate()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def _missing(metric: Metric, method: str) -> NotImplementedError:
    return NotImplementedError(f"{type(metric).__name__} must define {method}()")


class Metric:
    """Base class. Subclasses define update(), accumulate(), reset() and name(), and may define compute()."""

    def reset(self) -> None:
        """Forget all batches."""
        raise _missing(self, "reset")

    def update(self, *args: Any) -> Any:
        """Count a batch."""
        raise _missing(self, "update")

    def accumulate(self) -> Any:
        """The value of all batches."""
        raise _missing(self, "accumulate")

    def name(self) -> Any:
        raise _missing(self, "name")

    def compute(self, *args: Any) -> Any:
        """What update() takes, from predictions and labels."""
        return args


def _hits(pred: Tensor, label: Tensor, count: int) -> Tensor:
    """For each of the `count` best classes whether it is the label's: [..., count] of float32. A last axis of more than
    one is a one-hot label."""
    best = tenon.topk(pred.detach(), count)[1]
    if label.ndim == pred.ndim and label.shape[-1] != 1:
        label = tenon.argmax(label, -1, keepdim=True)
    elif label.ndim == pred.ndim - 1:
        label = label.unsqueeze(-1)
    return (best == label.cast(tenon.int64)).cast(tenon.float32)


class Accuracy(Metric):
    """The part of samples whose label is among the `topk` best classes, for each of these numbers."""

    def __init__(self, topk: Sequence[int] = (1,), name: str | None = None) -> None:
        self.topk = tuple(topk)
        stem = name or "acc"
        self._names = [stem] if self.topk == (1,) else [f"{stem}_top{k}" for k in self.topk]
        self.reset()

    def reset(self) -> None:
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def compute(self, pred: Tensor, label: Tensor) -> Tensor:  # type: ignore[override]
        return _hits(pred, label, max(self.topk))

    def update(self, correct: Any) -> Any:  # type: ignore[override]
        """Count what compute() has given. The accuracy of this batch."""
        hits = tenon.asarray(correct)
        samples = hits.numel() // hits.shape[-1]
        now = []
        for i, k in enumerate(self.topk):
            right = float(tenon.sum(hits[..., :k]).item())
            self.total[i] += right
            self.count[i] += samples
            now.append(right / samples)
        return now[0] if len(now) == 1 else now

    def accumulate(self) -> Any:
        values = [t / c if c else 0.0 for t, c in zip(self.total, self.count, strict=True)]
        return values[0] if len(values) == 1 else values

    def name(self) -> list[str]:
        return self._names


class _Binary(Metric):
    """Counts of predictions that are probabilities of class 1, above one half or not."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:  # type: ignore[override]
        said = tenon.asarray(preds).reshape([-1]) > 0.5
        truth = tenon.asarray(labels).reshape([-1]) == 1
        if said.shape != truth.shape:
            raise ValueError(
                f"{type(self).__name__}.update: expected as many labels as predictions, got {truth.numel()} and "
                f"{said.numel()}"
            )
        self.tp += int(tenon.sum(tenon.logical_and(said, truth)).item())
        self.fp += int(tenon.sum(tenon.logical_and(said, ~truth)).item())
        self.fn += int(tenon.sum(tenon.logical_and(~said, truth)).item())

    def name(self) -> str:
        return self._name


class Precision(_Binary):
    """The part of right ones among predictions of class 1."""

    def __init__(self, name: str = "precision") -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        said = self.tp + self.fp
        return self.tp / said if said else 0.0


class Recall(_Binary):
    """The part of right predictions among labels of class 1."""

    def __init__(self, name: str = "recall") -> None:
        super().__init__(name)

    def accumulate(self) -> float:
        there = self.tp + self.fn
        return self.tp / there if there else 0.0


class Auc(Metric):
    """The area below the curve of hits over false alarms, from counts in `num_thresholds` + 1 steps of the probability."""

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc") -> None:
        if curve != "ROC":
            raise NotImplementedError(f"Auc(): expected curve='ROC', got {curve!r}")
        self._steps, self._name = num_thresholds, name
        self.reset()

    def reset(self) -> None:
        self._counts = [tenon.zeros([self._steps + 1], dtype=tenon.int64) for _ in range(2)]

    def update(self, preds: Any, labels: Any) -> None:  # type: ignore[override]
        """Probabilities of the classes 0 and 1, [samples, 2], and labels."""
        scores = tenon.asarray(preds)
        if scores.ndim != 2 or scores.shape[1] != 2:
            raise ValueError(
                f"Auc.update: expected probabilities of two classes, [samples, 2], got {tuple(scores.shape)}"
            )
        place = (scores[:, 1] * self._steps).cast(tenon.int64)
        truth = tenon.asarray(labels).reshape([-1])
        for kind, count in enumerate(self._counts):
            ones = ((truth != 0) == bool(kind)).cast(tenon.int64)
            self._counts[kind] = tenon.index_add(count, place, ones, 0)

    def accumulate(self) -> float:
        negative, positive = (count.tolist()[::-1] for count in self._counts)
        area, hits, alarms = 0.0, 0, 0
        for wrong, right in zip(negative, positive, strict=True):
            area += wrong * (hits + hits + right) / 2.0
            hits, alarms = hits + right, alarms + wrong
        return area / (hits * alarms) if hits and alarms else 0.0

    def name(self) -> str:
        return self._name


def accuracy(
    input: Tensor,
    label: Tensor,
    k: int = 1,
    correct: Tensor | None = None,
    total: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """The part of samples whose label is among the `k` best classes."""
    for parameter, value in (("correct", correct), ("total", total)):
        if value is not None:
            raise NotImplementedError(
                f"accuracy(): expected {parameter}=None, got a Tensor to write to"
            )
    return tenon.mean(tenon.sum(_hits(input, label, k), -1))
