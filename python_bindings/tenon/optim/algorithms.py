# SPDX-License-Identifier: Apache-2.0
"""The optimizers. Each update is one fused operator that writes parameter and state in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import Tensor

from . import lists
from .optimizer import Optimizer, with_decay


class SGD(Optimizer):
    """Stochastic gradient descent, with `momentum` if it is not 0."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "multi_precision": multi_precision,
            },
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        if not group["momentum"] >= 0.0:
            raise ValueError(
                f"{type(self).__name__}: expected momentum >= 0, got {group['momentum']}"
            )
        if group["nesterov"] and (not group["momentum"] or group["dampening"]):
            raise ValueError(f"{type(self).__name__}: nesterov needs momentum > 0 and dampening 0")

    def updates_rows(self, group: dict[str, Any]) -> bool:
        return not group["momentum"] and not group["weight_decay"]

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        if not momentum:
            lists.sgd_update(param, grad, lr=lr, weight_decay=decay, out=param)
            return
        velocity, dampening = state.get("velocity"), group["dampening"]
        if velocity is None:  # the first step takes the gradient undamped
            velocity, dampening = state.setdefault("velocity", lists.zeros_like(param)), 0.0
        lists.momentum_update(
            param,
            grad,
            velocity,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=decay,
            nesterov=group["nesterov"],
            out=(param, velocity),
        )


class Momentum(SGD):
    """SGD with momentum 0.9 unless given."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, 0.0, weight_decay, nesterov)


class Adam(Optimizer):
    """Steps scaled by running moments of the gradient (Kingma and Ba, 2015).

    With `amsgrad` the second moment is the largest so far (Reddi et al., 2018). With `capturable` the
    number of steps is a tensor, so that a program can hold the update (tenon.export). None: on the CPU it is, unless
    `amsgrad` is given; other devices update faster by a number.

    With `lazy`, rows of an embedding with `sparse=True` that have no gradient are left alone, with their moments: faster by
    as much as the table is larger than a batch, and another algorithm, as the moments do not decay there meanwhile.
    """

    takes_lists = True
    fused_update: Callable[..., Any] = staticmethod(lists.adam_update)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
        capturable: bool | None = None,
        lazy: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "multi_precision": multi_precision,
                "capturable": capturable,
                "lazy": lazy,
            },
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        self.check_betas(group)
        if group["capturable"] and group["amsgrad"]:
            raise ValueError(
                f"{type(self).__name__}: expected capturable without amsgrad, got both"
            )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        counts_in_tensor = group["capturable"]
        if counts_in_tensor is None:
            counts_in_tensor = param.device.type == "cpu" and not group["amsgrad"]
        step = tenon.zeros([], device=param.device) if counts_in_tensor else 0
        return {"step": step, "m": tenon.zeros_like(param), "v": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if not isinstance(state["step"], (int, float)):
            self._update_capturable(param, grad, state, group)
            return
        state["step"] += 1
        m, v = state["m"], state["v"]
        beta1, beta2 = group["betas"]
        if group["amsgrad"]:
            self._update_amsgrad(param, grad, state, group)
            return
        self.fused_update(
            param,
            grad,
            m,
            v,
            step=state["step"],
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            out=(param, m, v),
        )

    def _update_capturable(
        self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """The same by an operator that reads the number of steps from a tensor."""
        (beta1, beta2), step = group["betas"], state["step"]
        lists.add(step, 1.0, out=step)
        m, v = state["m"], state["v"]
        lists.adam_update_counted(
            param,
            grad,
            m,
            v,
            step,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=self.decoupled,
            out=(param, m, v),
        )

    decoupled = False  # whether weight decay acts on the parameter instead of the gradient

    def _update_amsgrad(
        self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        (beta1, beta2), lr, step = group["betas"], group["lr"], state["step"]
        if self.decoupled:
            lists.multiply(param, 1.0 - lr * group["weight_decay"], out=param)
        else:
            grad = with_decay(param, grad, group["weight_decay"])
        if "max_v" not in state:
            state["max_v"] = lists.zeros_like(param)
        m, v, max_v = state["m"], state["v"], state["max_v"]
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        lists.lerp(v, grad * grad, 1.0 - beta2, out=v)
        lists.maximum(max_v, v, out=max_v)
        scale = lists.sqrt(max_v) * (1.0 - beta2**step) ** -0.5 + group["eps"]
        lists.subtract(param, m * (lr / (1.0 - beta1**step)) / scale, out=param)


class AdamW(Adam):
    """Adam with weight decay taken from the parameter, not the gradient (Loshchilov and Hutter)."""

    fused_update = staticmethod(lists.adamw_update)
    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
        capturable: bool | None = None,
        lazy: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            multi_precision=multi_precision,
            capturable=capturable,
            lazy=lazy,
        )


class RMSprop(Optimizer):
    """Steps scaled by a running mean of squared gradients.

    `centered` subtracts the square of the mean gradient; `momentum` keeps a running direction.
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "alpha": alpha,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "centered": centered,
                "maximize": maximize,
                "multi_precision": multi_precision,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"v": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["momentum"] or group["centered"]:
            self._update_composed(param, grad, state, group)
            return
        lists.rmsprop_update(
            param,
            grad,
            state["v"],
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            out=(param, state["v"]),
        )

    @staticmethod
    def _update_composed(
        param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        grad = with_decay(param, grad, group["weight_decay"])
        alpha, v = group["alpha"], state["v"]
        lists.lerp(v, grad * grad, 1.0 - alpha, out=v)
        square = v
        if group["centered"]:
            mean = state.setdefault("mean", lists.zeros_like(param))
            lists.lerp(mean, grad, 1.0 - alpha, out=mean)
            square = v - mean * mean
        direction = grad / (lists.sqrt(square) + group["eps"])
        if group["momentum"]:
            velocity = state.setdefault("velocity", lists.zeros_like(param))
            lists.add(velocity * group["momentum"], direction, out=velocity)
            direction = velocity
        lists.subtract(param, direction * group["lr"], out=param)


class Adagrad(Optimizer):
    """Steps scaled by the sum of squared gradients so far (Duchi et al., 2011).

    The rate of step t is `lr / (1 + (t - 1) * lr_decay)`.
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        lr_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "eps": eps,
                "weight_decay": weight_decay,
                "lr_decay": lr_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "maximize": maximize,
                "multi_precision": multi_precision,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "v": tenon.full_like(param, group["initial_accumulator_value"])}

    def updates_rows(self, group: dict[str, Any]) -> bool:
        # Without eps the dense update divides 0 by 0 where there was no gradient yet.
        return not group["weight_decay"] and group["eps"] > 0

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        step = state["step"] = state.get("step", 0) + 1
        lists.adagrad_update(
            param,
            grad,
            state["v"],
            lr=group["lr"] / (1.0 + (step - 1) * group["lr_decay"]),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            out=(param, state["v"]),
        )
