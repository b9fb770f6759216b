# SPDX-License-Identifier: Apache-2.0
"""What schedules share.

A schedule is a closed formula of the step. Where another schedule has changed the rate in between,
each multiplies it by its own change of that step: two schedules on one optimizer act together.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer, Zero

_numbers = itertools.count()


class LRScheduler:
    """Subclasses define rate(base, step), and chained(...) if the proportion is not what they keep.

    `last_epoch` is the number of the step before the first one, for a run that continues.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer, self._number = optimizer, next(_numbers)
        # A second scheduler on the same optimizer starts from the same rates as the first.
        self.base_rates = [
            group.setdefault("initial_lr", group["lr"]) for group in optimizer.param_groups
        ]
        for i, (group, base) in enumerate(zip(optimizer.param_groups, self.base_rates)):
            at_end = self._is_floor(group["lr"], base)
            if at_end and optimizer._schedules.have_stepped:  # an earlier schedule has ended there
                group["lr"] = base
                optimizer._schedules.zeros.pop(i, None)
        self._start(last_epoch + 1)

    def rate(self, base: float, step: int) -> float:
        """The learning rate after `step` steps for a group that was created with `base`."""
        raise NotImplementedError(f"{type(self).__name__} must define rate(base, step)")

    def floor(self, base: float) -> float:
        """The rate that others leave alone: they multiply what is above it."""
        return 0.0

    def chained(self, current: float, base: float, step: int) -> float:
        """The rate of `step`, where another schedule has set `current`: multiplied by the change of
        this schedule. From a rate of 0 on, by what the others had made of it before."""
        group, floor = self._group, self.floor(base)
        if not self._is_floor(self._own[group], base):
            self._others[group] = (current - floor) / (self._own[group] - floor)
        return floor + self._others[group] * (self._now - floor)

    def _is_floor(self, rate: float, base: float) -> bool:
        """Whether nothing is left of a rate to be multiplied."""
        floor = self.floor(base)
        return abs(rate - floor) <= 1e-12 * abs(base - floor)

    def step(self) -> None:
        self.last_step += 1
        self.optimizer._schedules.have_stepped = True
        self._apply()

    def restart(self, step: int = 0, others: Sequence[float] | None = None) -> None:
        """Begin again at `step` with the initial rates, multiplied by what other schedules make of
        them."""
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_rates)):
            group["lr"] = base if others is None else base * others[i]
            self.optimizer._schedules.zeros.pop(i, None)
        self._start(step)

    def own_factors(self) -> list[float]:
        """What this schedule multiplies the initial rates of the groups by."""
        return [own / base if base else 1.0 for own, base in zip(self._own, self.base_rates)]

    def others(self) -> list[float]:
        """What other schedules, or the program, have multiplied the rates of the groups by."""
        factors = []
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_rates)):
            floor = self.floor(base)
            if group["lr"] == self._rates[i] or self._is_floor(self._own[i], base):
                factors.append(self._others[i])
            else:
                factors.append((group["lr"] - floor) / (self._own[i] - floor))
        return factors

    def group_rate(self, group: int, step: int) -> float:
        """The rate of a group after `step` steps, where no other schedule changes it."""
        self._group = group  # for schedules with a setting for each group
        return self.rate(self.base_rates[group], step)

    _group = 0
    _now = 0.0  # what rate() has given for the step that is applied

    def _start(self, step: int) -> None:
        """Act on the rates of the groups, which are the initial ones, or another schedule's."""
        self.last_step = self._at = step
        self._own = list(self.base_rates)  # what rate() gave for step `_at`
        self._others = [1.0] * len(self._own)  # what other schedules multiply it by
        self._rates = list(self._own)  # what was set
        # Whether no other schedule has changed the rate of a group, so that the formula holds.
        self._alone = [True] * len(self._own)
        self._apply()

    def _apply(self) -> None:
        own, rates = [], []
        for i, base in enumerate(self.base_rates):
            own.append(self.group_rate(i, self.last_step))
            rates.append(self._applied(i, base, own[i]))
        self._own, self._at = own, self.last_step
        self._set(rates)

    def _applied(self, group: int, base: float, own: float) -> float:
        """The rate of a group where that of this schedule alone is `own`."""
        current, zeros = self.optimizer.param_groups[group]["lr"], self.optimizer._schedules.zeros
        zero = zeros.get(group)
        if zero is not None and current == 0.0:
            # Nothing can be read off the rate, so the product of the others is kept beside it.
            before = self._own[group]
            if self._number in zero.schedules:
                if own == 0.0:
                    return 0.0
                zero.schedules.remove(self._number)
                if not zero.schedules:
                    del zeros[group]
                    self._alone[group] = self._alone[group] and zero.others == 1.0
                    self._others[group] = zero.others
                    return self._others[group] * own
                zero.others *= own / base
            elif own == 0.0:
                zero.schedules.add(self._number)
                zero.others *= base / before if before else 1.0
            else:
                zero.others *= own / before if before else 1.0
            return 0.0
        self._alone[group] = self._alone[group] and current == self._rates[group]
        self._now = own
        rate = own if self._alone[group] else self.chained(current, base, self.last_step)
        if base and rate == own == 0.0:
            zeros[group] = Zero({self._number}, self._others[group])
        return rate

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
            "own_rates": list(self._own),
            "others": list(self._others),
            "behind_zero": [self._behind_zero(i) for i in range(len(self._rates))],
        }

    def _behind_zero(self, group: int) -> float | None:
        """What the others multiply a rate by that this schedule multiplies by 0."""
        zero = self.optimizer._schedules.zeros.get(group)
        return zero.others if zero is not None and self._number in zero.schedules else None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        groups = len(self.optimizer.param_groups)
        if len(state["base_rates"]) != groups:
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: expected {groups} parameter groups, got "
                f"{len(state['base_rates'])}"
            )
        self.last_step = state["last_step"]
        self.base_rates = list(state["base_rates"])
        own = state.get("own_rates")  # which older states lack
        self._own = list(own or [self.group_rate(i, self.last_step) for i in range(groups)])
        self._at = self.last_step
        self._others = list(state.get("others") or [1.0] * groups)
        self._set(list(state.get("rates") or self._own))
        self._alone = [
            rate == own and others == 1.0
            for rate, own, others in zip(self._rates, self._own, self._others)
        ]
        zeros = self.optimizer._schedules.zeros
        for i, others in enumerate(state.get("behind_zero") or ()):
            if others is not None:
                zeros.setdefault(i, Zero(set(), others)).schedules.add(self._number)
            elif i in zeros:
                zeros[i].schedules.discard(self._number)
                if not zeros[i].schedules:
                    del zeros[i]

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
