# SPDX-License-Identifier: Apache-2.0
"""paddle.optimizer.lr: schedules of the learning rate, which an optimizer asks at each step.

A schedule is an object of its own, unlike tenon.optim.lr_scheduler's: it has a rate without an optimizer, and `schedule()`
gives it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

from tenon._core import Tensor

__all__ = """CosineAnnealingDecay CosineAnnealingWarmRestarts CyclicLR ExponentialDecay InverseTimeDecay LRScheduler LambdaDecay
LinearLR LinearWarmup MultiStepDecay MultiplicativeDecay NaturalExpDecay NoamDecay OneCycleLR PiecewiseDecay PolynomialDecay
ReduceOnPlateau StepDecay""".split()


def _silent(name: str, verbose: bool) -> None:
    if verbose:
        raise NotImplementedError(
            f"{name}(): expected verbose=False, got {verbose}; print the schedule's last_lr"
        )


class LRScheduler:
    """Subclasses define get_lr(), the rate of the step `last_epoch`."""

    def __init__(
        self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        name = type(self).__name__
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, int | float):
            raise TypeError(
                f"{name}(): expected learning_rate a number, got {type(learning_rate).__name__}"
            )
        if learning_rate < 0:
            raise ValueError(f"{name}(): expected learning_rate >= 0, got {learning_rate}")
        _silent(name, verbose)
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.step()

    def __call__(self) -> float:
        """The rate now."""
        return self.last_lr

    def get_lr(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()

    keys = ["last_epoch", "last_lr"]

    def state_keys(self) -> None:
        """Subclasses set `keys`, the names of the attributes that state_dict() holds."""

    def state_dict(self) -> dict[str, Any]:
        self.state_keys()
        return {name: getattr(self, name) for name in self.keys}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.state_keys()
        missing = [name for name in self.keys if name not in state_dict]
        if missing:
            raise RuntimeError(
                f"{type(self).__name__}.set_state_dict: expected the keys {self.keys}, got a state without {missing}"
            )
        for name in self.keys:
            setattr(self, name, state_dict[name])

    set_dict = set_state_dict


class NoamDecay(LRScheduler):
    """`learning_rate * d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5)`."""

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if d_model <= 0:
            raise ValueError(f"NoamDecay(): expected d_model > 0, got {d_model}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        falling = self.last_epoch**-0.5 if self.last_epoch else 1.0
        rising = self.warmup_steps**-1.5 * self.last_epoch
        return self.base_lr * self.d_model**-0.5 * min(falling, rising)


class PiecewiseDecay(LRScheduler):
    """`values[i]` up to the step before `boundaries[i]`."""

    def __init__(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if len(boundaries) < 1 or len(values) != len(boundaries) + 1:
            raise ValueError(
                "PiecewiseDecay(): expected boundaries and one value more than these, got "
                f"{len(boundaries)} boundaries and {len(values)} values"
            )
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(last_epoch=last_epoch, verbose=verbose)

    def get_lr(self) -> float:
        return self.values[bisect.bisect_right(self.boundaries, self.last_epoch)]


class _WithGamma(LRScheduler):
    def __init__(
        self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_WithGamma):
    """The rate times `exp(-gamma * step)`."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_WithGamma):
    """The rate divided by `1 + gamma * step`."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_WithGamma):
    """The rate times `gamma ** step`."""

    def get_lr(self) -> float:
        return self.base_lr * self.gamma**self.last_epoch


class PolynomialDecay(LRScheduler):
    """From the rate to `end_lr` in `decay_steps` steps. With `cycle`, what is longer than that has twice as many steps, and
    so on."""

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if decay_steps <= 0 or power <= 0:
            raise ValueError(
                f"PolynomialDecay(): expected decay_steps and power above 0, got {decay_steps} and {power}"
            )
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        step, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= max(1, math.ceil(step / steps))
        part = (1 - min(step, steps) / steps) ** self.power
        return (self.base_lr - self.end_lr) * part + self.end_lr


class LinearWarmup(LRScheduler):
    """From `start_lr` to `end_lr` in `warmup_steps` steps, then `learning_rate`, a number or a schedule whose first step
    is then."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(learning_rate, int | float | LRScheduler):
            raise TypeError(
                f"LinearWarmup(): expected learning_rate a number or a schedule, got {type(learning_rate).__name__}"
            )
        if isinstance(learning_rate, ReduceOnPlateau):
            raise NotImplementedError(
                "LinearWarmup(): expected a schedule that steps without a metric, got ReduceOnPlateau"
            )
        if end_lr <= start_lr:
            raise ValueError(
                f"LinearWarmup(): expected end_lr above start_lr, got {end_lr} and {start_lr}"
            )
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            rise = (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps
            return rise + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])


class StepDecay(LRScheduler):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(
        self,
        learning_rate: float,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if step_size < 1 or gamma >= 1.0:
            raise ValueError(
                f"StepDecay(): expected step_size >= 1 and gamma < 1, got {step_size} and {gamma}"
            )
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepDecay(LRScheduler):
    """The rate times `gamma` at each of the steps `milestones`."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if list(milestones) != sorted(set(milestones)) or gamma >= 1.0:
            raise ValueError(
                f"MultiStepDecay(): expected milestones that rise and gamma < 1, got {list(milestones)} and {gamma}"
            )
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return self.base_lr * self.gamma ** bisect.bisect_right(self.milestones, self.last_epoch)


class _WithFunction(LRScheduler):
    def __init__(
        self,
        learning_rate: float,
        lr_lambda: Callable[[int], float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not callable(lr_lambda):
            raise TypeError(
                f"{type(self).__name__}(): expected lr_lambda a function, got {type(lr_lambda).__name__}"
            )
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_WithFunction):
    """The rate times `lr_lambda(step)`."""

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_WithFunction):
    """The rate times `lr_lambda(1) * ... * lr_lambda(step)`."""

    def get_lr(self) -> float:
        return self.base_lr * math.prod(map(self.lr_lambda, range(1, self.last_epoch + 1)))


class CosineAnnealingDecay(LRScheduler):
    """Along a cosine from the rate to `eta_min` in `T_max` steps, and back."""

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingDecay(): expected T_max >= 1, got {T_max}")
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        return _cosine(self.base_lr, self.eta_min, self.last_epoch / self.T_max)


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Along a cosine to `eta_min` in `T_0` steps, then again in `T_mult` times as many, and so on."""

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts(): expected T_0 and T_mult >= 1, got {T_0} and {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        step, length = max(self.last_epoch, 0), self.T_0
        if self.T_mult == 1:
            step %= length
        while step >= length:
            step, length = step - length, length * self.T_mult
        return _cosine(self.base_lr, self.eta_min, step / length)


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_steps` steps."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1 or total_steps <= 0:
            raise ValueError(
                "LinearLR(): expected factors from 0 to 1, start_factor above 0, and total_steps >= 1, got "
                f"{start_factor}, {end_factor} and {total_steps}"
            )
        self.total_steps = total_steps
        self.start_factor, self.end_factor = start_factor, end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        part = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * part)


class OneCycleLR(LRScheduler):
    """Up to `max_learning_rate` and down to `end_learning_rate` in `total_steps` steps (Smith and Topin, 2017)."""

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR(): expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if total_steps <= 0 or not 0 <= phase_pct <= 1 or (three_phase and phase_pct >= 0.5):
            raise ValueError(
                "OneCycleLR(): expected total_steps >= 1 and phase_pct from 0 to 1, below 0.5 with three_phase, got "
                f"{total_steps} and {phase_pct}"
            )
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        first = max_learning_rate / divide_factor
        top = phase_pct * total_steps - 1
        if three_phase:
            self.ends = [0, top, 2 * phase_pct * total_steps - 2, total_steps - 1]
            self.rates = [first, max_learning_rate, first, end_learning_rate]
        else:
            self.ends = [0, top, total_steps - 1]
            self.rates = [first, max_learning_rate, end_learning_rate]
        super().__init__(first, last_epoch, verbose)

    def get_lr(self) -> float:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: expected at most total_steps={self.total_steps} steps, got {step}"
            )
        for i in range(1, len(self.ends)):
            if step <= self.ends[i] or i == len(self.ends) - 1:
                break
        start, end = self.ends[i - 1 : i + 1]
        low, high = self.rates[i - 1 : i + 1]
        part = (step - start) / (end - start)
        return (
            _cosine(low, high, part) if self.anneal_strategy == "cos" else low + (high - low) * part
        )


class CyclicLR(LRScheduler):
    """Up from the base to the maximum in `step_size_up` steps and down in `step_size_down`, again and again (Smith, 2017)."""

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"CyclicLR(): expected mode 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
            )
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(
                f"CyclicLR(): expected scale_mode 'cycle' or 'iterations', got {scale_mode!r}"
            )
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down <= 0:
            raise ValueError(
                f"CyclicLR(): expected step_size_up and step_size_down >= 1, got {step_size_up} and {down}"
            )
        self.max_lr, self.length = max_learning_rate, step_size_up + down
        self.top = step_size_up / self.length
        self.mode, self.exp_gamma = mode, exp_gamma
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        step = self.last_epoch
        cycle = 1 + step // self.length
        place = 1 + step / self.length - cycle
        height = place / self.top if place <= self.top else (place - 1) / (self.top - 1)
        return self.base_lr + (self.max_lr - self.base_lr) * height * self._scale(cycle, step)

    def _scale(self, cycle: int, step: int) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "exp_range":
            return self.exp_gamma**step
        return 1.0 if self.mode == "triangular" else 0.5 ** (cycle - 1)


class ReduceOnPlateau(LRScheduler):
    """The rate times `factor` when step(metric) has seen no better value for more than `patience` steps."""

    keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        verbose: bool = False,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                "ReduceOnPlateau(): expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got "
                f"{mode!r} and {threshold_mode!r}"
            )
        if factor >= 1.0:
            raise ValueError(f"ReduceOnPlateau(): expected factor < 1, got {factor}")
        _silent("ReduceOnPlateau", verbose)
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.best: float | None = None
        self.base_lr = self.last_lr = float(learning_rate)

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at a metric."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        value = float(metrics.item() if isinstance(metrics, Tensor) else metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            rate = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - rate > self.epsilon:
                self.last_lr = rate

    def _is_better(self, value: float, best: float) -> bool:
        change = self.threshold * (best if self.threshold_mode == "rel" else 1.0)
        return value < best - change if self.mode == "min" else value > best + change
