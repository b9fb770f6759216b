# SPDX-License-Identifier: Apache-2.0
"""Optimizers that scale their steps by other statistics of the gradient than Adam's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tenon
from tenon import Tensor

from . import lists
from .optimizer import Optimizer, with_decay


class Adadelta(Optimizer):
    """Steps as large as those before, scaled by the gradients before (Zeiler, 2012)."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "maximize": maximize, "multi_precision": multi_precision}
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise ValueError(f"Adadelta: expected rho in [0, 1], got {group['rho']}")

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"v": tenon.zeros_like(param), "steps": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = with_decay(param, grad, group["weight_decay"])
        rho, eps, v, steps = group["rho"], group["eps"], state["v"], state["steps"]
        lists.lerp(v, grad * grad, 1.0 - rho, out=v)
        step = grad * lists.sqrt(steps + eps) / lists.sqrt(v + eps)
        lists.lerp(steps, step * step, 1.0 - rho, out=steps)
        lists.subtract(param, step * group["lr"], out=param)


class Rprop(Optimizer):
    """Steps whose size grows while the sign of the gradient stays, and shrinks when it changes
    (Riedmiller and Braun, 1993). For full batches."""

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "maximize": maximize,
            "multi_precision": multi_precision,
        }
        super().__init__(params, options)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        shrink, grow = group["etas"]
        if not 0.0 < shrink < 1.0 < grow:
            raise ValueError(f"Rprop: expected etas below and above 1, got {group['etas']}")

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"before": tenon.zeros_like(param), "size": tenon.full_like(param, group["lr"])}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        before, size = state["before"], state["size"]
        product = grad * before
        other = lists.where(product < 0, size * shrink, size)
        lists.clip(lists.where(product > 0, size * grow, other), smallest, largest, out=size)
        grad = lists.where(product < 0, 0.0, grad)  # no step right after a change of sign
        lists.subtract(param, lists.sign(grad) * size, out=param)
        lists.clone(grad, out=before)


class ASGD(Optimizer):
    """Gradient descent that keeps the average `ax` of the parameters (Polyak and Juditsky, 1992).

    The average begins after `t0` steps; it is in the state, the parameters are not replaced by it.
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0}
        super().__init__(
            params,
            {
                **options,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "multi_precision": multi_precision,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "eta": group["lr"], "mu": 1.0, "ax": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = with_decay(param, grad, group["weight_decay"])
        state["step"] += 1
        eta, step, lambd = state["eta"], state["step"], group["lambd"]
        lists.subtract(param * (1.0 - lambd * eta), grad * eta, out=param)
        lists.lerp(state["ax"], param, state["mu"], out=state["ax"])
        state["eta"] = group["lr"] / (1.0 + lambd * group["lr"] * step) ** group["alpha"]
        state["mu"] = 1.0 / max(1.0, step - group["t0"])


class Adafactor(Optimizer):
    """Adam's scale from one number for each row and one for each column (Shazeer and Stern, 2018).

    `eps` is the smallest square that counts (None: the square of the dtype's precision) and the
    smallest size of a parameter; `d` limits the root mean square of an update.
    """

    state_has_shape_of_parameter = False
    takes_complex = False
    needs_whole_parameters = True
    takes_sharded_tensors = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d}
        super().__init__(
            params,
            {
                **options,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "multi_precision": multi_precision,
            },
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options({**group, "eps": group["eps"][1]})

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {"dtype": param.dtype, "device": param.device}
        if param.ndim < 2:
            return {"step": 0, "v": tenon.zeros_like(param)}
        shape = list(param.shape)
        return {
            "step": 0,
            "rows": tenon.zeros([*shape[:-1], 1], **options),
            "columns": tenon.zeros([*shape[:-2], 1, shape[-1]], **options),
        }

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        eps1, eps2 = group["eps"]
        eps1 = tenon.finfo(param.dtype).eps if eps1 is None else eps1
        state["step"] += 1
        step, lr = state["step"], group["lr"]
        weight = float(step) ** group["beta2_decay"]
        size = tenon.maximum(_root_mean_square(param), eps2)
        tenon.multiply(param, 1.0 - lr * group["weight_decay"], out=param)
        if param.ndim < 2:
            v = state["v"]
            tenon.lerp(v, grad * grad, weight, out=v)
        else:
            rows, columns = state["rows"], state["columns"]
            tenon.lerp(rows, tenon.mean(grad * grad, -1, keepdim=True), weight, out=rows)
            tenon.lerp(columns, tenon.mean(grad * grad, -2, keepdim=True), weight, out=columns)
            v = rows * columns / tenon.maximum(tenon.mean(rows, -2, keepdim=True), eps1)
        direction = grad / tenon.sqrt(tenon.maximum(v, eps1 * eps1))
        limit = tenon.maximum(_root_mean_square(direction) / group["d"], 1.0)
        rate = size * min(lr, 1.0 / math.sqrt(step))
        tenon.subtract(param, direction * (rate / limit), out=param)


def _root_mean_square(x: Tensor) -> Tensor:
    return tenon.sqrt(tenon.mean(x * x))


class Ftrl(Optimizer):
    """Follow the regularised leader (McMahan et al., 2013): weights that `l1` makes exactly 0.

    The regularisation is `l1 * sum(abs(param)) + l2 * sum(param ** 2)`; the rate of an element falls with
    the sum of its squared gradients to the power `lr_power`.
    """

    takes_lists = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        *,
        maximize: bool = False,
        multi_precision: bool = False,
    ) -> None:
        options = {"lr": lr, "l1": l1, "l2": l2, "lr_power": lr_power}
        super().__init__(
            params, {**options, "maximize": maximize, "multi_precision": multi_precision}
        )

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        for name, allowed in (("l1", group["l1"] >= 0.0), ("l2", group["l2"] >= 0.0)):
            if not allowed:
                raise ValueError(f"Ftrl: expected {name} >= 0, got {group[name]}")
        if not group["lr"] > 0.0:
            raise ValueError(f"Ftrl: expected lr > 0, got {group['lr']}")
        if not group["lr_power"] <= 0.0:
            raise ValueError(f"Ftrl: expected lr_power <= 0, got {group['lr_power']}")

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"squares": tenon.zeros_like(param), "linear": tenon.zeros_like(param)}

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, l1, power = group["lr"], group["l1"], -group["lr_power"]
        squares, linear = state["squares"], state["linear"]
        before = squares**power
        lists.add(squares, grad * grad, out=squares)
        after = squares**power
        lists.add(linear, grad - (after - before) / lr * param, out=linear)
        curvature = after / lr + 2.0 * group["l2"]
        moved = (lists.clip(linear, -l1, l1) - linear) / curvature
        # No gradient has come yet, and there is no regularisation: the element stays.
        lists.where(curvature > 0, moved, param, out=param)
