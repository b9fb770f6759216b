# SPDX-License-Identifier: Apache-2.0
"""What the optimizers of paddle.optimizer share: a rate that may be a schedule, `grad_clip`, and Paddle's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle.optimizer.lr import LRScheduler
from tenon.compat.paddle.regularizer import L2Decay


class Optimizer(tenon.optim.Optimizer):
    """Base class. `parameters` are parameters, or dicts of a part of them under "params", whose "learning_rate" multiplies
    the rate and whose "weight_decay" stands in place of that of the others.

    `grad_clip` changes the gradients that a step takes, not those that parameters have.
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Iterable[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        defaults = {
            "lr": self.get_lr(),
            "weight_decay": decay_of(type(self).__name__, weight_decay),
        }
        super().__init__(self._given, defaults)

    def _prepare(
        self,
        learning_rate: float | Tensor | LRScheduler,
        parameters: Iterable[Any] | None,
        grad_clip: Callable[[Any], Any] | None,
    ) -> None:
        """What add_param_group() reads, before the constructor of Tenon's optimizer calls it."""
        name = type(self).__name__
        if parameters is None:
            raise ValueError(
                f"{name}(): expected parameters=layer.parameters(), got None; no program has them instead"
            )
        if isinstance(parameters, Tensor):
            raise TypeError(f"{name}(): expected a list of parameters, got a Tensor")
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(
                f"{name}(): expected grad_clip one of paddle.nn.ClipGradBy..., got {type(grad_clip).__name__}"
            )
        if isinstance(learning_rate, Tensor):
            learning_rate = float(learning_rate.item())
        if not isinstance(learning_rate, int | float | LRScheduler):
            raise TypeError(
                f"{name}(): expected learning_rate a number or a schedule of paddle.optimizer.lr, got "
                f"{type(learning_rate).__name__}"
            )
        self._learning_rate: float | LRScheduler = learning_rate
        self._grad_clip = grad_clip
        self._factors: list[float] = []  # what each group multiplies the rate by
        self._given = list(parameters)

    def add_param_group(self, group: dict[str, Any]) -> None:
        group = dict(group)
        factor = float(group.pop("learning_rate", 1.0))
        if "weight_decay" in group:
            group["weight_decay"] = decay_of(type(self).__name__, group["weight_decay"])
        super().add_param_group({**group, "lr": self.get_lr() * factor})
        self._factors.append(factor)

    def get_lr(self) -> float:
        """The rate now."""
        rate = self._learning_rate
        return rate() if isinstance(rate, LRScheduler) else float(rate)

    def set_lr(self, value: float) -> None:
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError(
                f"{type(self).__name__}.set_lr: expected a learning_rate that is a number, got "
                f"{type(self._learning_rate).__name__}, which sets it"
            )
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(
                f"{type(self).__name__}.set_lr_scheduler: expected a schedule, got {type(scheduler).__name__}"
            )
        self._learning_rate = scheduler

    def step(
        self, closure: Callable[[], Any] | None = None, *, found_inf: Tensor | None = None
    ) -> Any:
        """Update every parameter that has a gradient."""
        for group, factor in zip(self.param_groups, self._factors, strict=True):
            group["lr"] = self.get_lr() * factor
        if self._grad_clip is None:
            return super().step(closure, found_inf=found_inf)
        if closure is not None:
            raise NotImplementedError(
                f"{type(self).__name__}.step: expected no closure beside grad_clip, got both"
            )
        pairs = self._with_gradients()
        try:
            with tenon.no_grad():
                dense = [
                    (p, g if g.layout in ("strided", "sharded") else g.to_dense()) for p, g in pairs
                ]
                for param, grad in self._grad_clip(dense):
                    param.grad = grad
            return super().step(found_inf=found_inf)
        finally:
            for param, grad in pairs:
                param.grad = grad

    def _with_gradients(self) -> list[tuple[Tensor, Tensor]]:
        params = (param for group in self.param_groups for param in group["params"])
        return [(param, param.grad) for param in params if param.grad is not None]

    def minimize(
        self,
        loss: Tensor,
        startup_program: Any = None,
        parameters: Any = None,
        no_grad_set: Any = None,
    ) -> tuple[None, list[tuple[Tensor, Tensor]]]:
        """step(), after `loss.backward()`, which it does not call. The parameters that were updated and their gradients."""
        given = {
            "startup_program": startup_program,
            "parameters": parameters,
            "no_grad_set": no_grad_set,
        }
        for name, value in given.items():
            if value is not None:
                raise NotImplementedError(
                    f"{type(self).__name__}.minimize: expected {name}=None, got {value!r}; an optimizer updates the "
                    "parameters that it was made with"
                )
        if not isinstance(loss, Tensor):
            raise TypeError(
                f"{type(self).__name__}.minimize: expected a Tensor as loss, got {type(loss).__name__}"
            )
        self.step()
        return None, self._with_gradients()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set gradients to zero, or forget them: a parameter whose gradient is zero still decays."""
        self.zero_grad(set_to_none=not set_to_zero)

    clear_gradients = clear_grad

    def state_dict(self) -> dict[str, Any]:
        """As Tenon's, by numbers of parameters, which have no names here, and of a schedule under "LR_Scheduler"."""
        state = super().state_dict()
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        if isinstance(self._learning_rate, LRScheduler):
            if "LR_Scheduler" not in state_dict:
                raise ValueError(
                    f"{type(self).__name__}.set_state_dict: expected the key 'LR_Scheduler', as the rate is a schedule"
                )
            self._learning_rate.set_state_dict(state_dict["LR_Scheduler"])
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "LR_Scheduler"})

    load_state_dict = set_dict = set_state_dict  # type: ignore[assignment]


def decay_of(name: str, weight_decay: Any) -> float:
    """The coefficient that Tenon's optimizers take."""
    if weight_decay is None:
        return 0.0
    if isinstance(weight_decay, Tensor):
        return float(weight_decay.item())
    if not isinstance(weight_decay, int | float | L2Decay):
        raise TypeError(
            f"{name}(): expected weight_decay a number or L2Decay, got {type(weight_decay).__name__}"
        )
    return float(weight_decay)


def number(value: Any) -> float:
    """A number, or a tensor of one."""
    return float(value.item()) if isinstance(value, Tensor) else float(value)


def refuse(name: str, **given: tuple[Any, Any]) -> None:
    """Refuse parameters, each given with its neutral value, that have another one."""
    for parameter, (value, neutral) in given.items():
        if value != neutral:
            raise NotImplementedError(
                f"{name}(): expected {parameter}={neutral!r}, got {value!r}; tenon.compat.paddle has nothing else"
            )
