# SPDX-License-Identifier: Apache-2.0
"""Schedulers: the learning rate as a function of the number of steps taken.

Every schedule is a closed formula of the step, so resuming needs one number and no history.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """Call step() after each optimizer.step() (or each epoch, if that is your unit)."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        # A second scheduler on the same optimizer starts from the same rates as the first.
        self.base_rates = [
            group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups
        ]
        self.last_step = 0
        self._apply()

    def rate(self, base: float, step: int) -> float:
        """The learning rate after `step` steps for a group that was created with `base`."""
        raise NotImplementedError(f"{type(self).__name__} must define rate(base, step)")

    def step(self) -> None:
        self.last_step += 1
        self._apply()

    def _apply(self) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_rates):
            group["lr"] = self.rate(base, self.last_step)

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"last_step": self.last_step, "base_rates": list(self.base_rates)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["base_rates"]) != len(self.optimizer.param_groups):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected "
                f"{len(self.optimizer.param_groups)} parameter groups, got "
                f"{len(state['base_rates'])}"
            )
        self.last_step = state["last_step"]
        self.base_rates = list(state["base_rates"])
        self._apply()


class LambdaLR(LRScheduler):
    """Rate times `factor(step)`."""

    def __init__(self, optimizer: Optimizer, factor: Callable[[int], float]) -> None:
        self.factor = factor
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * self.factor(step)


class StepLR(LRScheduler):
    """Rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: expected step_size >= 1, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // self.step_size)


class CosineAnnealingLR(LRScheduler):
    """From the rate down to `min_lr` along half a cosine in `steps` steps; constant after that."""

    def __init__(self, optimizer: Optimizer, steps: int, min_lr: float = 0.0) -> None:
        if steps < 1:
            raise ValueError(f"CosineAnnealingLR: expected steps >= 1, got {steps}")
        self.steps, self.min_lr = steps, min_lr
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        progress = min(step / self.steps, 1.0)
        return self.min_lr + (base - self.min_lr) * (1.0 + math.cos(math.pi * progress)) / 2.0


class LinearWarmup(LRScheduler):
    """From `start` times the rate up to the rate in `steps` steps, then as `after` says.

    `after` counts from the end of the warm-up and must not be stepped by itself.
    """

    def __init__(
        self, optimizer: Optimizer, steps: int, start: float = 0.0, after: LRScheduler | None = None
    ) -> None:
        if steps < 1:
            raise ValueError(f"LinearWarmup: expected steps >= 1, got {steps}")
        self.steps, self.start, self.after = steps, start, after
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        if step < self.steps:
            return base * (self.start + (1.0 - self.start) * step / self.steps)
        return base if self.after is None else self.after.rate(base, step - self.steps)
