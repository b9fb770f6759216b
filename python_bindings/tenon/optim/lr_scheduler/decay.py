# SPDX-License-Identifier: Apache-2.0
"""Schedules that users of Paddle know: NoamDecay, PiecewiseDecay, NaturalExpDecay and
InverseTimeDecay."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from ..optimizer import Optimizer
from .base import LRScheduler
from .factor import FactorLR


class NoamLR(FactorLR):
    """Rate times `d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5)`: up in
    `warmup_steps` steps, then down (Vaswani et al., 2017). Step 0 has rate 0."""

    def __init__(
        self, optimizer: Optimizer, d_model: int, warmup_steps: int, last_epoch: int = -1
    ) -> None:
        if d_model < 1 or warmup_steps < 1:
            raise ValueError(
                f"NoamLR: expected d_model and warmup_steps of at least 1, got {d_model} and "
                f"{warmup_steps}"
            )
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        rise = step * self.warmup_steps**-1.5
        return self.d_model**-0.5 * min(step**-0.5, rise) if step else 0.0


class PiecewiseLR(LRScheduler):
    """`values[i]` from step `boundaries[i - 1]` to the one before `boundaries[i]`."""

    def __init__(
        self,
        optimizer: Optimizer,
        boundaries: Sequence[int],
        values: Sequence[float],
        last_epoch: int = -1,
    ) -> None:
        if len(values) != len(boundaries) + 1:
            raise ValueError(
                f"PiecewiseLR: expected {len(boundaries) + 1} values for {len(boundaries)} "
                f"boundaries, got {len(values)}"
            )
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return self.values[bisect.bisect_right(self.boundaries, step)]


class NaturalExpLR(FactorLR):
    """Rate times `exp(-gamma * step)`."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return math.exp(-self.gamma * step)


class InverseTimeLR(FactorLR):
    """Rate divided by `1 + gamma * step`."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return 1.0 / (1.0 + self.gamma * step)
