# SPDX-License-Identifier: Apache-2.0
"""Metrics of classes: accuracy, and those that follow from a confusion matrix."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

from .base import Metric


class Accuracy(Metric):
    """The part of right predictions.

    Predictions are scores [N, C, ...], of which the `top_k` largest count, or classes of the shape
    of the target. Targets of `ignore_index` do not count.
    """

    def __init__(self, top_k: int = 1, ignore_index: int | None = None) -> None:
        super().__init__()
        self.top_k, self.ignore_index = top_k, ignore_index

    def update(self, prediction: Tensor, target: Tensor) -> None:
        shape = [*prediction.shape]
        if prediction.ndim == target.ndim + 1:
            if shape.pop(1) < 2:
                raise ValueError(
                    "Accuracy.update: expected scores of two classes or more after the first "
                    "axis, got "
                    f"shape {tuple(prediction.shape)}; compare probabilities of one class with "
                    "a threshold"
                )
        if shape != [*target.shape]:
            raise ValueError(
                f"Accuracy.update: expected predictions of shape {tuple(target.shape)}, or "
                "with an axis "
                f"of classes after the first, got {tuple(prediction.shape)}"
            )
        with tenon.no_grad():
            if prediction.ndim == target.ndim:
                right = prediction == target
            elif self.top_k == 1:
                right = tenon.argmax(prediction, 1) == target
            else:
                scores = tenon.moveaxis(prediction.detach(), 1, -1)
                _, best = tenon.topk(scores, self.top_k)
                right = tenon.any(best == target.unsqueeze(-1), axis=-1)
            if self.ignore_index is None:
                count = tenon.tensor(target.numel())
            else:
                counted = target != self.ignore_index
                right = tenon.logical_and(right, counted)
                count = tenon.sum(counted)
            self._add("right", tenon.sum(right))
            self._add("count", count)

    def compute(self) -> float:
        return self._sum("right").item() / max(self._sum("count").item(), 1)


class ConfusionMatrix(Metric):
    """[target, prediction]: how often each class was predicted for each.

    Predictions are classes, scores [N, num_classes, ...], or for two classes probabilities of the
    shape of the target, of which those from `threshold` on are class 1.
    """

    def __init__(
        self, num_classes: int = 2, threshold: float = 0.5, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        self.num_classes, self.threshold = num_classes, threshold
        self.ignore_index = ignore_index

    def update(self, prediction: Tensor, target: Tensor) -> None:
        with tenon.no_grad():
            classes = self._classes(prediction.detach(), target)
            flat = target.cast(tenon.int64).reshape([-1])
            index = flat * self.num_classes + classes.reshape([-1])
            size = self.num_classes * self.num_classes
            outside = tenon.logical_or(
                self._is_outside(flat), self._is_outside(classes.reshape([-1]))
            )
            ignored = tenon.zeros_like(outside)
            if self.ignore_index is not None:
                ignored = flat == self.ignore_index
                outside = tenon.logical_and(outside, tenon.logical_not(ignored))
            # Counted, and reported when the value is computed, as looking here would wait for the
            # device.
            self._add("outside", tenon.sum(outside))
            left_out = tenon.logical_or(outside, ignored)
            index, ones = tenon.where(left_out, 0, index), (~left_out).cast(tenon.int64)
            zeros = tenon.zeros([size], dtype=tenon.int64, device=index.device)
            self._add("matrix", tenon.index_add(zeros, index, ones, 0))

    def _is_outside(self, classes: Tensor) -> Tensor:
        return tenon.logical_or(classes < 0, classes >= self.num_classes)

    def _classes(self, prediction: Tensor, target: Tensor) -> Tensor:
        if prediction.ndim == target.ndim + 1:
            return tenon.argmax(prediction, 1)
        if tuple(prediction.shape) != tuple(target.shape):
            raise ValueError(
                f"{type(self).__name__}.update: expected predictions of shape "
                f"{tuple(target.shape)}, or with an axis of classes after the first, got "
                f"{tuple(prediction.shape)}"
            )
        if prediction.dtype.is_floating_point:
            if self.num_classes != 2:
                raise ValueError(
                    f"{type(self).__name__}.update: expected classes as integers, or scores of "
                    f"{self.num_classes} classes after the first axis, got "
                    f"{prediction.dtype.name} of the "
                    "shape of the target"
                )
            return (prediction >= self.threshold).cast(tenon.int64)
        return prediction.cast(tenon.int64)

    @property
    def matrix(self) -> list[list[int]]:
        outside = self.counts.get("outside")  # which older states lack
        if outside is not None and (count := int(outside.item())):
            raise ValueError(
                f"{type(self).__name__}.compute: expected classes from 0 to "
                f"{self.num_classes - 1}, got "
                f"{count} pairs with others; pass num_classes or ignore_index"
            )
        return self._sum("matrix").reshape([self.num_classes, self.num_classes]).tolist()

    def compute(self) -> Any:
        return self.matrix


class _OfClasses(ConfusionMatrix):
    """A value for each class from how often it was predicted rightly, wrongly, or missed.

    `average` is 'binary' (the value of class 1), 'micro' (all classes counted together), 'macro'
    (the mean over classes), 'weighted' (by the number of targets), or 'none' (a list).
    """

    default = "binary"

    def __init__(
        self,
        num_classes: int = 2,
        average: str | None = None,
        threshold: float = 0.5,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(num_classes, threshold, ignore_index)
        average = average or ("macro" if num_classes > 2 else self.default)
        if average not in ("binary", "micro", "macro", "weighted", "none"):
            raise ValueError(
                f"{type(self).__name__}: expected average 'binary', 'micro', 'macro', 'weighted' "
                f"or 'none', got {average!r}"
            )
        if average == "binary" and num_classes != 2:
            raise ValueError(
                f"{type(self).__name__}: average='binary' is for two classes, got {num_classes}"
            )
        self.average = average

    @staticmethod
    def value(right: int, wrong: int, missed: int) -> float:
        raise NotImplementedError("a metric of counts defines value(right, wrong, missed)")

    def compute(self) -> Any:
        matrix = self.matrix
        classes = range(self.num_classes)
        counts = [
            (
                matrix[c][c],
                sum(matrix[t][c] for t in classes if t != c),
                sum(matrix[c][p] for p in classes if p != c),
            )
            for c in classes
        ]
        if self.average == "micro":
            return self.value(*(sum(each) for each in zip(*counts)))
        values = [self.value(*each) for each in counts]
        if self.average == "binary":
            return values[1]
        if self.average == "macro":
            return sum(values) / len(values)
        if self.average == "weighted":
            weights = [right + missed for right, _, missed in counts]
            return sum(v * w for v, w in zip(values, weights)) / max(sum(weights), 1)
        return values


class Precision(_OfClasses):
    """The part of right ones among the predictions of a class."""

    @staticmethod
    def value(right: int, wrong: int, missed: int) -> float:
        return right / max(right + wrong, 1)


class Recall(_OfClasses):
    """The part of right predictions among the targets of a class."""

    @staticmethod
    def value(right: int, wrong: int, missed: int) -> float:
        return right / max(right + missed, 1)


class F1(_OfClasses):
    """The harmonic mean of precision and recall."""

    @staticmethod
    def value(right: int, wrong: int, missed: int) -> float:
        return 2 * right / max(2 * right + wrong + missed, 1)


class IoU(_OfClasses):
    """Intersection over union of predictions and targets of a class; the mean over classes."""

    default = "macro"

    @staticmethod
    def value(right: int, wrong: int, missed: int) -> float:
        return right / max(right + wrong + missed, 1)
