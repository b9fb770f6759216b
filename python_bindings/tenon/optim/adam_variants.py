# SPDX-License-Identifier: Apache-2.0
"""Relatives of Adam: Adamax, NAdam and RAdam."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tenon
from tenon import Tensor

from . import lists
from .optimizer import Optimizer, with_decay


class _Moments(Optimizer):
    """Keeps running moments `m` and `v` of the gradient."""

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        self.check_betas(group)

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "m": tenon.zeros_like(param), "v": tenon.zeros_like(param)}

    @staticmethod
    def decay(param: Any, grad: Any, group: dict[str, Any]) -> Any:
        """Weight decay on the gradient, or on the parameter if it is decoupled."""
        if not group.get("decoupled_weight_decay"):
            return with_decay(param, grad, group["weight_decay"])
        lists.multiply(param, 1.0 - group["lr"] * group["weight_decay"], out=param)
        return grad

    @staticmethod
    def advance(grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Count the step and move both moments."""
        (beta1, beta2), m, v = group["betas"], state["m"], state["v"]
        state["step"] += 1
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        lists.lerp(v, grad * grad, 1.0 - beta2, out=v)


class Adamax(_Moments):
    """Adam with the largest gradient so far, decayed, as scale (Kingma and Ba, 2015)."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "maximize": maximize, "multi_precision": multi_precision}
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = self.decay(param, grad, group)
        (beta1, beta2), m, largest = group["betas"], state["m"], state["v"]
        state["step"] += 1
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        lists.maximum(largest * beta2, lists.abs(grad) + group["eps"], out=largest)
        rate = group["lr"] / (1.0 - beta1 ** state["step"])
        lists.subtract(param, m * rate / largest, out=param)


class NAdam(_Moments):
    """Adam with Nesterov's momentum, whose weight grows with the steps (Dozat, 2016)."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        more = {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(
            params, {**options, **more, "maximize": maximize, "multi_precision": multi_precision}
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super().new_state(param, group), "mu_product": 1.0}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = self.decay(param, grad, group)
        self.advance(grad, state, group)
        (beta1, beta2), step, lr = group["betas"], state["step"], group["lr"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        product = state["mu_product"] = state["mu_product"] * mu
        scale = lists.sqrt(state["v"] / (1.0 - beta2**step)) + group["eps"]
        direction = grad * (lr * (1.0 - mu) / (1.0 - product))
        direction = direction + state["m"] * (lr * mu_next / (1.0 - product * mu_next))
        lists.subtract(param, direction / scale, out=param)


class RAdam(_Moments):
    """Adam whose scale is left out while its variance is large, at the start (Liu et al., 2020)."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        more = {
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "multi_precision": multi_precision,
        }
        super().__init__(params, {**options, **more})

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = self.decay(param, grad, group)
        self.advance(grad, state, group)
        (beta1, beta2), step = group["betas"], state["step"]
        correction = 1.0 - beta2**step
        rate = group["lr"] / (1.0 - beta1**step)
        longest = 2.0 / (1.0 - beta2) - 1.0
        length = longest - 2.0 * step * beta2**step / correction
        if length <= 5.0:
            lists.subtract(param, state["m"] * rate, out=param)
            return
        rectified = (length - 4.0) * (length - 2.0) * longest
        rectified = math.sqrt(rectified / ((longest - 4.0) * (longest - 2.0) * length))
        scale = lists.sqrt(state["v"]) + group["eps"]
        rate *= rectified * math.sqrt(correction)
        lists.subtract(param, state["m"] * rate / scale, out=param)
