# SPDX-License-Identifier: Apache-2.0
"""Schedules made of schedules."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler
from .plateau import ReduceLROnPlateau


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
        for each in self.schedulers:
            if isinstance(each, ReduceLROnPlateau):
                raise TypeError(
                    f"{name}: expected schedules that step without a metric, got "
                    "ReduceLROnPlateau; leave it "
                    "out and call its step(metric) by itself, as schedules of one optimizer "
                    "act together"
                )

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate

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
        for each in self.schedulers:
            rates = getattr(each, "base_rates", None)
            now = [group.get("initial_lr") for group in self.optimizer.param_groups]
            if rates is not None and rates != now:
                raise ValueError(
                    f"ChainedScheduler: expected schedules of the initial rates {now}, got "
                    f"{type(each).__name__} of {rates}; make those that set initial rates, "
                    "such as CyclicLR "
                    "and OneCycleLR, before the others"
                )
        # A sequence has set the initial rates as it was made, without those that were there before.
        if any(isinstance(each, _Combined) for each in self.schedulers):
            if all(each.last_step == 0 for each in self.schedulers):
                self.restart()

    def step(self) -> None:
        for each in self.schedulers:
            each.step()

    @property
    def last_step(self) -> int:
        """The number of steps so far."""
        return self.schedulers[0].last_step

    def restart(self, step: int = 0, others: Sequence[float] | None = None) -> None:
        """Begin again at `step` with the initial rates, multiplied by what other schedules make of
        them."""
        first, *following = self.schedulers
        first.restart(step, others)
        for each in following:
            each._start(step)

    def others(self) -> list[float]:
        """What other schedules, or the program, have multiplied the rates of the groups by."""
        first, *following = self.schedulers
        factors = first.others()  # of those that follow, too
        for each in following:
            factors = [a / b if b else a for a, b in zip(factors, each.own_factors())]
        return factors

    def own_factors(self) -> list[float]:
        """What this schedule multiplies the initial rates of the groups by."""
        return [math.prod(each) for each in zip(*(s.own_factors() for s in self.schedulers))]

    def _start(self, step: int) -> None:
        for each in self.schedulers:
            each._start(step)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._set(state["rates"])

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
        if any(a > b for a, b in itertools.pairwise([0, *milestones])):
            raise ValueError(
                f"SequentialLR: expected milestones of at least 0 in ascending order, got "
                f"{list(milestones)}"
            )
        self._setup(schedulers, optimizer)
        self.milestones = list(milestones)
        self.restart(last_epoch + 1)

    def _active(self) -> int:
        """Which schedule the step is of."""
        return bisect.bisect_right(self.milestones, self.last_step)

    def restart(self, step: int = 0, others: Sequence[float] | None = None) -> None:
        """Begin again at `step` with the initial rates, multiplied by what other schedules make of
        them."""
        self.last_step = step
        index = self._active()
        begin = self.milestones[index - 1] if index else 0
        self.schedulers[index].restart(step - begin, others)

    def others(self) -> list[float]:
        """What other schedules, or the program, have multiplied the rates of the groups by."""
        return self.schedulers[self._active()].others()

    def own_factors(self) -> list[float]:
        """What this schedule multiplies the initial rates of the groups by."""
        return self.schedulers[self._active()].own_factors()

    def _start(self, step: int) -> None:
        self.last_step = step
        index = self._active()
        self.schedulers[index]._start(step - (self.milestones[index - 1] if index else 0))

    def step(self) -> None:
        before = self._active()
        self.last_step += 1
        index = self._active()
        if index == before:
            self.schedulers[index].step()
        else:
            self.schedulers[index].restart(0, self.schedulers[before].others())

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "last_step": self.last_step,
            "rates": self.get_last_lr(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.last_step = state["last_step"]
        self._set(state.get("rates") or self.schedulers[self._active()]._rates)


class LinearWarmup(LRScheduler):
    """From `start` times the rate up to the rate in `steps` steps, then as `after` says.

    `after` counts from the end of the warm-up and must not be stepped by itself.
    """

    def __init__(
        self, optimizer: Optimizer, steps: int, start: float = 0.0, after: LRScheduler | None = None
    ) -> None:
        if steps < 1:
            raise ValueError(f"LinearWarmup: expected steps >= 1, got {steps}")
        if after is not None and not isinstance(after, LRScheduler):
            raise TypeError(
                "LinearWarmup: expected after to be a schedule that is a formula of the step, got "
                f"{type(after).__name__}; pass it to SequentialLR behind the warm-up"
            )
        if getattr(after, "cycle_momentum", False):
            raise ValueError(
                f"LinearWarmup: {type(after).__name__} moves the momentum, and `after` sets "
                "rates alone; pass "
                "cycle_momentum=False, or SequentialLR of the warm-up and it"
            )
        self.steps, self.start, self.after = steps, start, after
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        if step < self.steps:
            return base * (self.start + (1.0 - self.start) * step / self.steps)
        return base if self.after is None else self.after.group_rate(self._group, step - self.steps)
