# SPDX-License-Identifier: Apache-2.0
"""How well detected boxes fit those that are there."""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from .base import Metric

_VERSIONS = ("integral", "11point")


class DetectionMAP(Metric):
    """Mean average precision of the classes (Everingham et al., 2010), over all batches.

    A detection is right if the box of its class that it shares most with shares more than `overlap_threshold`, and no better
    detection has it. `ap_version` 'integral' adds up precision times the steps of recall, '11point' averages the best precision from
    recalls 0, 0.1, ..., 1 on. Boxes of `background_label` do not count, nor difficult ones unless `evaluate_difficult`.
    """

    def __init__(
        self,
        class_num: int,
        overlap_threshold: float = 0.5,
        background_label: int = 0,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        super().__init__()
        if ap_version not in _VERSIONS:
            raise ValueError(
                f"DetectionMAP: expected ap_version 'integral' or '11point', got {ap_version!r}"
            )
        self.class_num, self.overlap_threshold = class_num, overlap_threshold
        self.background_label, self.evaluate_difficult = background_label, evaluate_difficult
        self.ap_version = ap_version

    def update(
        self,
        detections: Sequence[Tensor],
        boxes: Sequence[Tensor],
        labels: Sequence[Tensor],
        difficult: Sequence[Tensor] | None = None,
    ) -> None:
        """For each image rows class, score, x0, y0, x1, y1 [K, 6]; and the true boxes [B, 4] with labels [B], and which are difficult."""
        if not len(detections) == len(boxes) == len(labels):
            raise ValueError(
                f"DetectionMAP.update: expected as many images in each list, got {len(detections)}, {len(boxes)} and {len(labels)}"
            )
        positives = [0] * self.class_num
        judged: list[list[float]] = []  # class, score, right
        for image, found in enumerate(detections):
            kinds = [int(kind) for kind in labels[image].reshape([-1]).tolist()]
            if any(not 0 <= kind < self.class_num for kind in kinds):
                raise ValueError(
                    f"DetectionMAP.update: expected labels from 0 to {self.class_num - 1}, got {kinds}"
                )
            hard = (
                [False] * len(kinds)
                if difficult is None
                else [bool(x) for x in difficult[image].reshape([-1]).tolist()]
            )
            counts = [self.evaluate_difficult or not each for each in hard]
            for kind, counted in zip(kinds, counts):
                positives[kind] += counted
            judged += self._judged(found, boxes[image], kinds, counts)
        self._add("positives", tenon.tensor(positives, dtype=tenon.int64))
        self._add("judged", tenon.tensor(judged, dtype=tenon.float64).reshape([-1, 3]))

    def _add(self, name: str, count: Tensor) -> None:
        """Detections are kept, one below the other; what is there of each class is added up."""
        before = self.counts.get(name)
        if name == "judged" and before is not None:
            self.counts[name] = tenon.concat([before, count.to(before.device)])
        else:
            super()._add(name, count)

    def _judged(
        self, found: Tensor, boxes: Tensor, kinds: list[int], counts: list[bool]
    ) -> list[list[float]]:
        if found.numel() == 0:
            return []
        rows = found.tolist()
        overlap = tenon.box_iou(found[:, 2:], boxes).tolist() if kinds else [[] for _ in rows]
        taken: set[int] = set()
        judged = []
        for row in sorted(range(len(rows)), key=lambda each: -rows[each][1]):
            kind, score = int(rows[row][0]), rows[row][1]
            same = [each for each, other in enumerate(kinds) if other == kind]
            best = max(same, key=lambda each: overlap[row][each], default=None)
            hit = best is not None and overlap[row][best] > self.overlap_threshold
            if hit and best is not None and not counts[best]:
                continue  # neither right nor wrong
            judged.append([float(kind), score, float(hit and best not in taken)])
            if hit and best is not None:
                taken.add(best)
        return judged

    def compute(self) -> float:
        """The mean over the classes that are there; 0 if none is."""
        positives, judged = self._sum("positives").tolist(), self._sum("judged").tolist()
        precisions = []
        for kind, total in enumerate(positives):
            if kind != self.background_label and total:
                own = sorted((row for row in judged if row[0] == kind), key=lambda row: -row[1])
                precisions.append(self._average_precision([row[2] for row in own], total))
        return sum(precisions) / len(precisions) if precisions else 0.0

    def _average_precision(self, right: list[float], total: int) -> float:
        hits, points = 0.0, []  # recall and precision behind each detection
        for number, each in enumerate(right, 1):
            hits += each
            points.append((hits / total, hits / number))
        if self.ap_version == "11point":
            levels = [level / 10 for level in range(11)]
            return (
                sum(max((p for r, p in points if r >= level), default=0.0) for level in levels) / 11
            )
        area, before = 0.0, 0.0
        for recall, precision in points:
            area += precision * (recall - before)
            before = recall
        return area
