# SPDX-License-Identifier: Apache-2.0
"""Schedules made of schedules."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class _Combined:
    """Holds schedules of one optimizer and steps them."""

    optimizer: Optimizer
    schedulers: list[Any]

    def _setup(self, schedulers: Sequence[Any], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name}: expected one schedule or more, got none")
        self.schedulers = list(schedulers)
        self.optimizer = self.schedulers[0].optimizer if optimizer is None else optimizer
        if any(each.optimizer is not self.optimizer for each in self.schedulers):
            raise ValueError(f"{name}: expected schedules of one optimizer, got several optimizers")

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"schedulers": [each.state_dict() for each in self.schedulers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["schedulers"]) != len(self.schedulers):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected {len(self.schedulers)} "
                f"schedules, got {len(state['schedulers'])}"
            )
        for each, saved in zip(self.schedulers, state["schedulers"]):
            each.load_state_dict(saved)


class ChainedScheduler(_Combined):
    """Steps all schedules in order, each on the rates that the one before has set."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self._setup(schedulers, optimizer)

    def step(self) -> None:
        for each in self.schedulers:
            each.step()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for group, rate in zip(self.optimizer.param_groups, state["rates"]):
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "rates": self.get_last_lr()}


class SequentialLR(_Combined):
    """The first schedule until step `milestones[0]`, then the second from its begin, and so on."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[Any],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones for "
                f"{len(schedulers)} schedules, got {len(milestones)}"
            )
        self._setup(schedulers, optimizer)
        self.milestones, self.last_step = list(milestones), last_epoch + 1
        self.schedulers[0].restart()

    def step(self) -> None:
        self.last_step += 1
        index = bisect.bisect_right(self.milestones, self.last_step)
        if index and self.milestones[index - 1] == self.last_step:
            self.schedulers[index].restart()
        else:
            self.schedulers[index].step()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "last_step": self.last_step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.last_step = state["last_step"]
        active = self.schedulers[bisect.bisect_right(self.milestones, self.last_step)]
        active._set(active._rates)


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
