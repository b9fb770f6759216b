# SPDX-License-Identifier: Apache-2.0
"""The optimizers of paddle.optimizer: Paddle's parameters and defaults over Tenon's updates, and those updates that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.paddle.optimizer._base import Optimizer, decay_of, number, refuse
from tenon.compat.paddle.optimizer.lr import LRScheduler
from tenon.optim import lists
from tenon.optim.optimizer import with_decay

Rate = float | Tensor | LRScheduler
Parameters = Iterable[Any] | None
Clip = Callable[[Any], Any] | None


class SGD(Optimizer, tenon.optim.SGD):
    """Stochastic gradient descent."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.SGD.__init__(
            self,
            self._given,
            self.get_lr(),
            weight_decay=decay_of("SGD", weight_decay),
            multi_precision=multi_precision,
        )


class Momentum(Optimizer, tenon.optim.SGD):
    """SGD with momentum."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        momentum: float = 0.9,
        parameters: Parameters = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        refuse("Momentum", rescale_grad=(rescale_grad, 1.0))
        self._prepare(learning_rate, parameters, grad_clip)
        self.updates_together = bool(use_multi_tensor)
        tenon.optim.SGD.__init__(
            self,
            self._given,
            self.get_lr(),
            momentum,
            weight_decay=decay_of("Momentum", weight_decay),
            nesterov=use_nesterov,
            multi_precision=multi_precision,
        )


class Adam(Optimizer, tenon.optim.Adam):
    """Steps scaled by running moments of the gradient."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        self.updates_together = bool(use_multi_tensor)
        tenon.optim.Adam.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            number(epsilon),
            decay_of("Adam", weight_decay),
            amsgrad,
            lazy=lazy_mode,
            multi_precision=multi_precision,
        )


class AdamW(Optimizer, tenon.optim.AdamW):
    """Adam with weight decay taken from the parameter. `lr_ratio` multiplies the rate of a parameter."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Parameters = None,
        weight_decay: float | Tensor = 0.01,
        use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Clip = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        if apply_decay_param_fun is not None:
            raise NotImplementedError(
                "AdamW(): expected apply_decay_param_fun=None, got a function of names, which parameters have not; "
                'give the parameters that do not decay as {"params": ..., "weight_decay": 0.0}'
            )
        refuse("AdamW", use_lowprecision_moment=(use_lowprecision_moment, False))
        self._prepare(learning_rate, parameters, grad_clip)
        if lr_ratio is not None:
            if any(isinstance(each, dict) for each in self._given):
                raise NotImplementedError(
                    "AdamW(): expected a list of parameters beside lr_ratio, got dicts, whose learning_rate says it"
                )
            self._given = [
                {"params": [param], "learning_rate": lr_ratio(param)} for param in self._given
            ]
        tenon.optim.AdamW.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            number(epsilon),
            decay_of("AdamW", weight_decay),
            amsgrad,
            lazy=lazy_mode,
            multi_precision=multi_precision,
        )


class Adamax(Optimizer, tenon.optim.Adamax):
    """Adam with the largest gradient so far, decayed, as scale."""

    takes_lists = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.Adamax.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            number(epsilon),
            decay_of("Adamax", weight_decay),
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Epsilon is added to the scale of before, not to the gradient."""
        grad = with_decay(param, grad, group["weight_decay"])
        (beta1, beta2), m, largest = group["betas"], state["m"], state["v"]
        state["step"] += 1
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        decayed = lists.add(largest * beta2, group["eps"])
        lists.maximum(lists.abs(grad), decayed, out=largest)
        rate = group["lr"] / (1.0 - beta1 ** state["step"])
        lists.subtract(param, m * rate / largest, out=param)


class Adagrad(Optimizer, tenon.optim.Adagrad):
    """Steps scaled by the sum of squared gradients so far."""

    def __init__(
        self,
        learning_rate: Rate,
        epsilon: float = 1e-6,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.Adagrad.__init__(
            self,
            self._given,
            self.get_lr(),
            epsilon,
            decay_of("Adagrad", weight_decay),
            initial_accumulator_value=initial_accumulator_value,
        )


class Adadelta(Optimizer, tenon.optim.Adadelta):
    """Steps as large as those before, scaled by the gradients before."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.Adadelta.__init__(
            self, self._given, self.get_lr(), rho, epsilon, decay_of("Adadelta", weight_decay)
        )


class RMSProp(Optimizer, tenon.optim.RMSprop):
    """Steps scaled by a running mean of squared gradients, with epsilon below the root, and the rate in the momentum."""

    takes_lists = True

    def __init__(
        self,
        learning_rate: Rate,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.RMSprop.__init__(
            self,
            self._given,
            self.get_lr(),
            rho,
            epsilon,
            decay_of("RMSProp", weight_decay),
            momentum,
            centered,
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        grad = with_decay(param, grad, group["weight_decay"])
        alpha, v = group["alpha"], state["v"]
        lists.lerp(v, grad * grad, 1.0 - alpha, out=v)
        square = v
        if group["centered"]:
            mean = state.setdefault("mean", lists.zeros_like(param))
            lists.lerp(mean, grad, 1.0 - alpha, out=mean)
            square = v - mean * mean
        step = grad * group["lr"] / lists.sqrt(lists.add(square, group["eps"]))
        if group["momentum"]:
            velocity = state.setdefault("velocity", lists.zeros_like(param))
            lists.add(velocity * group["momentum"], step, out=velocity)
            step = velocity
        lists.subtract(param, step, out=param)


class Lamb(Optimizer, tenon.optim.Lamb):
    """AdamW's direction scaled to the norm of each parameter; parameters without decay are not scaled unless
    `always_adapt`."""

    takes_lists = True

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-6,
        parameters: Parameters = None,
        grad_clip: Clip = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        self._always_adapt = always_adapt
        leave = exclude_from_weight_decay_fn
        if leave is not None:
            if any(isinstance(each, dict) for each in self._given):
                raise NotImplementedError(
                    "Lamb(): expected a list of parameters beside exclude_from_weight_decay_fn, got dicts"
                )
            parts = (
                [param for param in self._given if bool(leave(param)) is left]
                for left in (False, True)
            )
            decays = (lamb_weight_decay, 0.0)
            self._given = [
                {"params": part, "weight_decay": decay}
                for part, decay in zip(parts, decays, strict=True)
                if part
            ]
        tenon.optim.Lamb.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            number(epsilon),
            number(lamb_weight_decay),
            multi_precision=multi_precision,
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["weight_decay"] or self._always_adapt:
            super().update(param, grad, state, group)
            return
        state["step"] += 1
        (beta1, beta2), step, m, v = group["betas"], state["step"], state["m"], state["v"]
        lists.lerp(m, grad, 1.0 - beta1, out=m)
        lists.lerp(v, grad * grad, 1.0 - beta2, out=v)
        scale = lists.sqrt(v / (1.0 - beta2**step)) + group["eps"]
        lists.subtract(param, m * (group["lr"] / (1.0 - beta1**step)) / scale, out=param)


class NAdam(Optimizer, tenon.optim.NAdam):
    """Adam with Nesterov's momentum."""

    def __init__(
        self,
        learning_rate: Rate = 0.002,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.NAdam.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            epsilon,
            decay_of("NAdam", weight_decay),
            momentum_decay,
        )


class RAdam(Optimizer, tenon.optim.RAdam):
    """Adam whose scale is left out while its variance is large."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        tenon.optim.RAdam.__init__(
            self,
            self._given,
            self.get_lr(),
            (number(beta1), number(beta2)),
            epsilon,
            decay_of("RAdam", weight_decay),
        )


class Rprop(Optimizer, tenon.optim.Rprop):
    """Steps whose size grows while the sign of the gradient stays. For full batches."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        learning_rate_range: tuple[float, float] = (1e-5, 50),
        parameters: Parameters = None,
        etas: tuple[float, float] = (0.5, 1.2),
        grad_clip: Clip = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        self._prepare(learning_rate, parameters, grad_clip)
        smallest, largest = learning_rate_range
        if not 0.0 < smallest <= self.get_lr() <= largest:
            raise ValueError(
                f"Rprop(): expected learning_rate within learning_rate_range {learning_rate_range}, got {self.get_lr()}"
            )
        tenon.optim.Rprop.__init__(
            self,
            self._given,
            self.get_lr(),
            etas,
            (smallest, largest),
            multi_precision=multi_precision,
        )


class ASGD(Optimizer):
    """The mean of the last gradients of each of `batch_num` batches is followed (Le Roux et al., 2012)."""

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        batch_num: int = 1,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if batch_num < 1:
            raise ValueError(f"ASGD(): expected batch_num >= 1, got {batch_num}")
        self._prepare(learning_rate, parameters, grad_clip)
        options = {"batch_num": batch_num, "multi_precision": multi_precision}
        defaults = {
            "lr": self.get_lr(),
            "weight_decay": decay_of("ASGD", weight_decay),
            **options,
        }
        tenon.optim.Optimizer.__init__(self, self._given, defaults)

    # The gradients before have an axis of batches first.
    state_has_shape_of_parameter = False

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        last = [tenon.zeros_like(param) for _ in range(group["batch_num"])]
        return {"step": 0, "total": tenon.zeros_like(param), "last": tenon.stack(last)}

    def update(
        self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        grad = with_decay(param, grad, group["weight_decay"])
        total, last = state["total"], state["last"]
        place = state["step"] % group["batch_num"]
        state["step"] += 1
        tenon.add(total - last[place], grad, out=total)
        last[place] = grad
        count = min(state["step"], group["batch_num"])
        tenon.subtract(param, total * (group["lr"] / count), out=param)


class LBFGS(Optimizer, tenon.optim.LBFGS):
    """Quasi-Newton steps for full batches; step() calls its closure several times."""

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Clip = None,
        name: str | None = None,
    ) -> None:
        refuse("LBFGS", weight_decay=(weight_decay, None), grad_clip=(grad_clip, None))
        self._prepare(learning_rate, parameters, None)
        tenon.optim.LBFGS.__init__(
            self,
            self._given,
            self.get_lr(),
            max_iter,
            max_eval,
            tolerance_grad,
            tolerance_change,
            history_size,
            line_search_fn,
        )
