# SPDX-License-Identifier: Apache-2.0
"""Metrics of the order of scores."""

from __future__ import annotations

import tenon
from tenon import Tensor

from .base import Metric


class AUC(Metric):
    """The area under the receiver operating characteristic: how often a target of 1 has a larger
    score than one of 0; ties count half. All scores are kept, so the value is exact."""

    def update(self, scores: Tensor, target: Tensor) -> None:
        """`scores` [N] or [N, 2] (the last column counts), `target` [N] of 0 and 1."""
        scores = scores.detach()
        if scores.ndim == target.ndim + 1:
            scores = scores[..., -1]
        if tuple(scores.shape) != tuple(target.shape):
            raise ValueError(
                f"AUC.update: expected scores of shape {tuple(target.shape)}, got "
                f"{tuple(scores.shape)}"
            )
        target = target.reshape([-1])
        if not bool(tenon.all(tenon.logical_or(target == 0, target == 1))):
            raise ValueError("AUC.update: expected targets of 0 and 1, got others")
        if bool(tenon.any(scores != scores)):
            raise ValueError("AUC.update: expected scores that have an order, got NaN")
        self._add("scores", scores.reshape([-1]))
        self._add("target", target.cast(tenon.bool))

    def _add(self, name: str, count: Tensor) -> None:
        before = self.counts.get(name)
        if before is not None:
            count = tenon.concat([before, count.to(before.device)])
        self.counts[name] = count

    def compute(self) -> float:
        scores, target = self._sum("scores"), self._sum("target")
        above = tenon.masked_select(scores, target)
        below = tenon.sort(tenon.masked_select(scores, tenon.logical_not(target)))
        if not above.numel() or not below.numel():
            raise ValueError("AUC.compute: expected targets of both classes, got one")
        smaller = tenon.sum(tenon.searchsorted(below, above)).item()
        not_larger = tenon.sum(tenon.searchsorted(below, above, right=True)).item()
        return (smaller + not_larger) / (2 * above.numel() * below.numel())
