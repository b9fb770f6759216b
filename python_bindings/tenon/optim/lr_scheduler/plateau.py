# SPDX-License-Identifier: Apache-2.0
"""A schedule that watches a metric."""

from __future__ import annotations

import math
from typing import Any

from tenon import Tensor

from ..optimizer import Optimizer


class ReduceLROnPlateau:
    """Multiplies the rates by `factor` when step(metric) has seen no better value for more than
    `patience` steps.

    `mode` is 'min' or 'max'. Better means by `threshold`, relative ('rel') or absolute ('abs').
    After a reduction, `cooldown` steps are not counted. Rates stay above `min_lr`, and changes below
    `eps` are left out.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceLROnPlateau: expected mode 'min' or 'max' and threshold_mode 'rel' or "
                f"'abs', got {mode!r} and {threshold_mode!r}"
            )
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: expected factor < 1, got {factor}")
        groups = len(optimizer.param_groups)
        smallest = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(smallest) != groups:
            raise ValueError(
                f"ReduceLROnPlateau: expected min_lr of one number or {groups}, got {len(smallest)}"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lrs, self.eps = cooldown, smallest, eps
        self.last_step = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def is_better(self, value: float) -> bool:
        """Whether `value` is better than the best so far by more than the threshold."""
        if math.isinf(self.best):
            return value < self.best if self.mode == "min" else value > self.best
        change = self.threshold * (self.best if self.threshold_mode == "rel" else 1.0)
        return value < self.best - change if self.mode == "min" else value > self.best + change

    def step(self, metrics: Any) -> None:
        value = float(metrics.item() if isinstance(metrics, Tensor) else metrics)
        self.last_step += 1
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, smallest in zip(self.optimizer.param_groups, self.min_lrs):
                rate = max(group["lr"] * self.factor, smallest)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    _SAVED = ("last_step", "best", "num_bad_epochs", "cooldown_counter")

    def state_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self._SAVED}, "rates": self.get_last_lr()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self._SAVED:
            setattr(self, name, state[name])
        for group, rate in zip(self.optimizer.param_groups, state["rates"]):
            group["lr"] = rate
