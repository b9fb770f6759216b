# SPDX-License-Identifier: Apache-2.0
"""Optimizers for large batches whose rate depends on the norms of each parameter, and Muon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tenon
from tenon import Tensor

from . import lists
from .optimizer import Optimizer, with_decay


class Lars(Optimizer):
    """SGD with momentum and the rate `lr * trust * norm(p) / (norm(g) + weight_decay * norm(p))`
    for each parameter p with gradient g (You et al., 2017)."""

    takes_lists = True
    needs_whole_parameters = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        trust: float = 1e-3,
        eps: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        super().__init__(
            params,
            {**options, "eps": eps, "maximize": maximize, "multi_precision": multi_precision},
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"velocity": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        decay, velocity = group["weight_decay"], state["velocity"]
        size, slope = lists.norm(param), lists.norm(grad)
        ratio = group["trust"] * size / (slope + decay * size + group["eps"])
        # A parameter or a gradient of zero has no ratio; the rate is that of SGD then.
        ratio = lists.where(lists.logical_and(size > 0, slope > 0), ratio, 1.0)
        step = with_decay(param, grad, decay) * (ratio * group["lr"])
        lists.add(velocity * group["momentum"], step, out=velocity)
        lists.subtract(param, velocity, out=param)


class Lamb(Optimizer):
    """AdamW's direction scaled to the norm of each parameter (You et al., 2020)."""

    takes_lists = True
    needs_whole_parameters = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "maximize": maximize, "multi_precision": multi_precision}
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        self.check_betas(group)

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "m": tenon.zeros_like(param), "v": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        (beta1, beta2), step, m, v = group["betas"], state["step"], state["m"], state["v"]
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        lists.lerp(v, grad * grad, 1.0 - beta2, out=v)
        scale = lists.sqrt(v / (1.0 - beta2**step)) + group["eps"]
        direction = m / (1.0 - beta1**step) / scale + group["weight_decay"] * param
        size, length = lists.norm(param), lists.norm(direction)
        ratio = lists.where(lists.logical_and(size > 0, length > 0), size / length, 1.0)
        lists.subtract(param, direction * (ratio * group["lr"]), out=param)


class Muon(Optimizer):
    """Momentum whose matrix is replaced by a nearly orthogonal one (Jordan, 2024).

    A few Newton-Schulz iterations move all singular values towards 1. For weights of two axes;
    train embeddings, norms and biases with AdamW.
    """

    takes_complex = False
    needs_whole_parameters = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
        }
        super().__init__(
            params, {**options, "maximize": maximize, "multi_precision": multi_precision}
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        for param in group["params"]:
            if param.ndim != 2:
                raise ValueError(
                    f"Muon: expected parameters of two axes, got shape {tuple(param.shape)}; train "
                    "the others with AdamW"
                )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"velocity": tenon.zeros_like(param)}

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        velocity, momentum = state["velocity"], group["momentum"]
        tenon.lerp(velocity, grad, 1.0 - momentum, out=velocity)
        direction = tenon.lerp(grad, velocity, momentum) if group["nesterov"] else velocity
        rows, columns = param.shape
        x = direction.T if rows > columns else direction
        x = x / tenon.maximum(tenon.norm(x), group["eps"])
        a, b, c = group["ns_coefficients"]
        for _ in range(group["ns_steps"]):
            gram = x @ x.T
            x = a * x + (b * gram + c * (gram @ gram)) @ x
        x = x.T if rows > columns else x
        rate = group["lr"] * max(1.0, rows / columns) ** 0.5
        decayed = param * (1.0 - group["lr"] * group["weight_decay"])
        tenon.subtract(decayed, x * rate, out=param)
