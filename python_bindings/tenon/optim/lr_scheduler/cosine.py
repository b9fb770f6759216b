# SPDX-License-Identifier: Apache-2.0
"""Schedules along cosines (Loshchilov and Hutter, 2017)."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """From the rate down to `eta_min` along half a cosine in `T_max` steps, then up again."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: expected T_max >= 1, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return self.eta_min + (base - self.eta_min) * self._height(step)

    def floor(self, base: float) -> float:
        return self.eta_min

    def _height(self, step: int) -> float:
        return (1.0 + math.cos(math.pi * step / self.T_max)) / 2.0


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the rate down to `eta_min`: the first of `T_0` steps, each further one
    `T_mult` times as long. step() takes an epoch, which may be a fraction."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError(
                "CosineAnnealingWarmRestarts: expected T_0 and T_mult of at least 1, got "
                f"{T_0} and {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: Any = None) -> None:
        if epoch is not None and epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: expected epoch >= 0, got {epoch}")
        self.last_step = self.last_step + 1 if epoch is None else epoch
        self.optimizer._schedules.have_stepped = True
        self._apply()

    def floor(self, base: float) -> float:
        return self.eta_min

    def rate(self, base: float, step: float) -> float:
        length = self.T_0
        if self.T_mult == 1:
            step = step % length
        while step >= length:
            step -= length
            length *= self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / length)) / 2
