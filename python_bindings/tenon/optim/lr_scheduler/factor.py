# SPDX-License-Identifier: Apache-2.0
"""Schedules that multiply the initial rate by a factor of the step."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from ..optimizer import Optimizer
from .base import LRScheduler

Function = Callable[[int], float]


class FactorLR(LRScheduler):
    """Rate times `factor(step)`."""

    def factor(self, step: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define factor(step)")

    def rate(self, base: float, step: int) -> float:
        return base * self.factor(step)


class LambdaLR(LRScheduler):
    """Rate times `lr_lambda(step)`; one function, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = self.for_each_group(lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.lr_lambdas[self._group](step)


class MultiplicativeLR(LRScheduler):
    """In each step the rate is multiplied by `lr_lambda(step)`, from step 1 on."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1
    ) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = self.for_each_group(lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        function = self.lr_lambdas[self._group]
        # From the product so far, so that the function is called once for each step.
        if self._at == step - 1:
            return self._own[self._group] * function(step)
        for i in range(1, step + 1):
            base *= function(i)
        return base


class StepLR(FactorLR):
    """Rate times `gamma` after every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: expected step_size >= 1, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return self.gamma ** (step // self.step_size)


class MultiStepLR(FactorLR):
    """Rate times `gamma` at each of the steps `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return self.gamma ** bisect.bisect_right(self.milestones, step)


class ConstantLR(FactorLR):
    """Rate times `factor` during the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 <= factor <= 1.0:
            raise ValueError(f"ConstantLR: expected factor from 0 to 1, got {factor}")
        self.first_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return self.first_factor if step < self.total_iters else 1.0


class LinearLR(FactorLR):
    """The factor goes from `start_factor` to `end_factor` in `total_iters` steps; in 0 steps it is
    `end_factor` at once."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise ValueError(
                "LinearLR: expected start_factor above 0 and both factors up to 1, got "
                f"{start_factor} and {end_factor}"
            )
        if total_iters < 0:
            raise ValueError(f"LinearLR: expected total_iters >= 0, got {total_iters}")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        part = min(step, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ExponentialLR(FactorLR):
    """Rate times `gamma` in each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return self.gamma**step


class PolynomialLR(FactorLR):
    """The factor falls from 1 to 0 as `(1 - step / total_iters) ** power`."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        if total_iters < 1:
            raise ValueError(f"PolynomialLR: expected total_iters >= 1, got {total_iters}")
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        return (1.0 - min(step, self.total_iters) / self.total_iters) ** self.power
