# SPDX-License-Identifier: Apache-2.0
"""Schedules that raise the rate, then lower it, and move the momentum the other way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class _WithMomentum(LRScheduler):
    """Sets `momentum` or the first of `betas` as well, if `cycle_momentum`."""

    cycle_momentum = False

    def momentum(self, step: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} defines momentum(step) to cycle it")

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if not all("momentum" in group or "betas" in group for group in optimizer.param_groups):
            raise ValueError(
                f"{type(self).__name__}: the optimizer has no momentum; pass cycle_momentum=False"
            )

    def _set(self, rates: list[float]) -> None:
        super()._set(rates)
        if not self.cycle_momentum:
            return
        for i, group in enumerate(self.optimizer.param_groups):
            self._group = i  # for momentum()
            if "betas" in group:
                group["betas"] = (self.momentum(self.last_step), *group["betas"][1:])
            else:
                group["momentum"] = self.momentum(self.last_step)


class CyclicLR(_WithMomentum):
    """Between `base_lr` and `max_lr` and back, again and again (Smith, 2017).

    `mode` is 'triangular', 'triangular2' (each cycle half as high) or 'exp_range' (the height is
    multiplied by `gamma` in each step); `scale_fn` of the cycle, or of the iteration with
    `scale_mode='iterations'`, replaces it.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"CyclicLR: expected mode 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
            )
        self.optimizer = optimizer
        self.max_lrs = self.for_each_group(max_lr, "max_lr")
        for group, base in zip(optimizer.param_groups, self.for_each_group(base_lr, "base_lr")):
            group["lr"] = group["initial_lr"] = base
        self.up, self.down = (
            step_size_up,
            step_size_up if step_size_down is None else step_size_down,
        )
        if not self.up > 0 or not self.down >= 0:
            raise ValueError(
                "CyclicLR: expected step_size_up above 0 and step_size_down of at least 0, got "
                f"{self.up} and {self.down}"
            )
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
        self.base_momentums = self.for_each_group(base_momentum, "base_momentum")
        self.max_momentums = self.for_each_group(max_momentum, "max_momentum")
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        """From 0 to 1 and back in each cycle, scaled by the mode."""
        total = self.up + self.down
        cycle = math.floor(1 + step / total)
        x = 1.0 + step / total - cycle
        ratio = self.up / total
        height = x / ratio if x <= ratio else (x - 1.0) / (ratio - 1.0)
        if self.scale_fn is not None:
            return height * self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "triangular2":
            return height / 2.0 ** (cycle - 1)
        return height * self.gamma**step if self.mode == "exp_range" else height

    def rate(self, base: float, step: int) -> float:
        return base + (self.max_lrs[self._group] - base) * self._height(step)

    def momentum(self, step: int) -> float:
        largest, smallest = self.max_momentums[self._group], self.base_momentums[self._group]
        return largest - (largest - smallest) * self._height(step)


class OneCycleLR(_WithMomentum):
    """Up from `max_lr / div_factor` to `max_lr`, then down to that initial rate divided by
    `final_div_factor`, in `total_steps` or `epochs * steps_per_epoch` steps (Smith and Topin, 2019).

    `pct_start` is the part that goes up; `three_phase` goes down to the initial rate first, in as
    many steps as up. `anneal_strategy` is 'cos' or 'linear'.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: expected total_steps, or epochs and steps_per_epoch, got neither"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps < 1 or not 0.0 <= pct_start <= 1.0:
            raise ValueError(
                "OneCycleLR: expected one step or more and pct_start from 0 to 1, got "
                f"{total_steps} and {pct_start}"
            )
        if not div_factor > 0.0 or not final_div_factor > 0.0:
            raise ValueError(
                "OneCycleLR: expected div_factor and final_div_factor above 0, got "
                f"{div_factor} and {final_div_factor}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        self.optimizer, self.total_steps = optimizer, total_steps
        self.max_lrs = self.for_each_group(max_lr, "max_lr")
        self.anneal_strategy, self.div_factor = anneal_strategy, div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
        self.base_momentums = self.for_each_group(base_momentum, "base_momentum")
        self.max_momentums = self.for_each_group(max_momentum, "max_momentum")
        for group, largest in zip(optimizer.param_groups, self.max_lrs):
            group["lr"] = group["initial_lr"] = largest / div_factor
        # Every phase ends at a step, at a height of the rate: 0 is initial, 1 largest, None final.
        up = float(pct_start * total_steps) - 1.0
        self.final_div_factor = final_div_factor
        self.ends: list[tuple[float, Any]] = [(up, 1.0), (float(total_steps - 1), None)]
        if three_phase:
            self.ends.insert(1, (float(2 * pct_start * total_steps) - 2.0, 0.0))
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, stop: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (stop - start) * part
        return stop + (start - stop) / 2.0 * (1.0 + math.cos(math.pi * part))

    def _value(self, step: int, initial: float, largest: float, final: float) -> float:
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: expected at most {self.total_steps} steps, got {step}; pass a larger "
                "total_steps"
            )
        begin, start = 0.0, initial
        for end, height in self.ends:
            stop = final if height is None else (largest if height else initial)
            if step <= end or height is None:
                part = (step - begin) / (end - begin) if end > begin else 1.0  # a phase of one step
                return self._between(start, stop, part)
            begin, start = end, stop
        return final

    def rate(self, base: float, step: int) -> float:
        return self._value(step, base, self.max_lrs[self._group], base / self.final_div_factor)

    def momentum(self, step: int) -> float:
        largest, smallest = self.max_momentums[self._group], self.base_momentums[self._group]
        return self._value(step, largest, smallest, largest)
