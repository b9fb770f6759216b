# SPDX-License-Identifier: Apache-2.0
"""The optimizers. Each update is one fused operator that writes parameter and state in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import Tensor

from .optimizer import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent, with `momentum` if it is not 0."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
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

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        if not momentum:
            tenon.sgd_update(param, grad, lr=lr, weight_decay=decay, out=param)
            return
        velocity, dampening = state.get("velocity"), group["dampening"]
        if velocity is None:  # the first step takes the gradient undamped
            velocity, dampening = state.setdefault("velocity", tenon.zeros_like(param)), 0.0
        tenon.momentum_update(
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
    """Steps scaled by running moments of the gradient (Kingma and Ba, 2015)."""

    fused_update: Callable[..., Any] = staticmethod(tenon.adam_update)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        if not all(0.0 <= beta < 1.0 for beta in group["betas"]):
            raise ValueError(
                f"{type(self).__name__}: expected betas in [0, 1), got {group['betas']}"
            )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "m": tenon.zeros_like(param), "v": tenon.zeros_like(param)}

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        state["step"] += 1
        m, v = state["m"], state["v"]
        beta1, beta2 = group["betas"]
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


class AdamW(Adam):
    """Adam with weight decay taken from the parameter, not the gradient (Loshchilov and Hutter)."""

    fused_update = staticmethod(tenon.adamw_update)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


class RMSprop(Optimizer):
    """Steps scaled by a running mean of squared gradients."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"v": tenon.zeros_like(param)}

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        tenon.rmsprop_update(
            param,
            grad,
            state["v"],
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            out=(param, state["v"]),
        )


class Adagrad(Optimizer):
    """Steps scaled by the sum of squared gradients so far."""

    def __init__(
        self, params: Iterable[Any], lr: float = 0.01, eps: float = 1e-10, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"v": tenon.zeros_like(param)}

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        tenon.adagrad_update(
            param,
            grad,
            state["v"],
            lr=group["lr"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            out=(param, state["v"]),
        )
