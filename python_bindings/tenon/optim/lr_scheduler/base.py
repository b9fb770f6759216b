# SPDX-License-Identifier: Apache-2.0
"""What schedules share.

A schedule is a closed formula of the step, so that resuming needs one number and no history. Where
another schedule has changed the rate in between, each multiplies it by its own change of that step:
two schedules on one optimizer act together.
"""

from __future__ import annotations

from typing import Any

from ..optimizer import Optimizer


class LRScheduler:
    """Subclasses define rate(base, step), and chained(...) if they act on other rates, too.

    `last_epoch` is the number of the step before the first one, for a run that continues.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        # A second scheduler on the same optimizer starts from the same rates as the first.
        self.base_rates = [
            group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups
        ]
        self.last_step = last_epoch + 1
        self._rates = list(self.base_rates)
        # Whether no other schedule has changed the rate of a group, so that the formula holds.
        self._alone = [True] * len(self._rates)
        self._apply()

    def rate(self, base: float, step: int) -> float:
        """The learning rate after `step` steps for a group that was created with `base`."""
        raise NotImplementedError(f"{type(self).__name__} must define rate(base, step)")

    def chained(self, current: float, base: float, step: int) -> float:
        """The rate of `step`, where another schedule has set `current`; by default that is lost."""
        return self.rate(base, step)

    def step(self) -> None:
        self.last_step += 1
        self._apply()

    def restart(self) -> None:
        """Begin again at step 0 with the initial rates."""
        self.last_step = 0
        self._alone = [True] * len(self._rates)
        self._set(self._formula())

    def _apply(self) -> None:
        rates = []
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_rates)):
            self._group = i  # for schedules with a setting for each group
            self._alone[i] = self._alone[i] and group["lr"] == self._rates[i]
            if self._alone[i]:
                rates.append(self.rate(base, self.last_step))
            else:
                rates.append(self.chained(group["lr"], base, self.last_step))
        self._set(rates)

    def _formula(self) -> list[float]:
        rates = []
        for i, base in enumerate(self.base_rates):
            self._group = i
            rates.append(self.rate(base, self.last_step))
        return rates

    _group = 0

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._rates = rates

    @property
    def last_epoch(self) -> int:
        """The number of steps so far."""
        return self.last_step

    @property
    def base_lrs(self) -> list[float]:
        """The rates with which the groups were created."""
        return self.base_rates

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {
            "last_step": self.last_step,
            "base_rates": list(self.base_rates),
            "rates": list(self._rates),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if len(state["base_rates"]) != len(self.optimizer.param_groups):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected "
                f"{len(self.optimizer.param_groups)} parameter groups, got "
                f"{len(state['base_rates'])}"
            )
        self.last_step = state["last_step"]
        self.base_rates = list(state["base_rates"])
        self._set(list(state.get("rates") or self._formula()))
        self._alone = [a == b for a, b in zip(self._rates, self._formula())]

    def for_each_group(self, value: Any, name: str) -> list[Any]:
        """A setting that is one number or one for each group."""
        count = len(self.optimizer.param_groups)
        if not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            raise ValueError(
                f"{type(self).__name__}: expected {name} of one number or {count}, one for each "
                f"group, got {len(value)}"
            )
        return list(value)
