# SPDX-License-Identifier: Apache-2.0
"""The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (Nocedal and Wright, 2006)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tenon
from tenon import Tensor
from tenon._tensor.complex_parts import parts

from .optimizer import Optimizer


class LBFGS(Optimizer):
    """Quasi-Newton steps for full batches; step() calls its closure several times.

    `line_search_fn` is None, for steps of size `lr`, or 'strong_wolfe'. There is one group of
    parameters. A step ends after `max_iter` iterations or `max_eval` calls (None: 1.25 times as
    many), when no gradient exceeds `tolerance_grad`, or when loss or parameters change by less than
    `tolerance_change`.
    """

    state_has_shape_of_parameter = False
    needs_whole_parameters = True
    takes_sharded_tensors = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(
                f"LBFGS: expected line_search_fn None or 'strong_wolfe', got {line_search_fn!r}"
            )
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS: expected one group, got {len(self.param_groups)}")

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        if group["multi_precision"]:
            raise ValueError(
                "LBFGS: expected multi_precision=False: its history is in the dtype of the "
                "parameters; keep those in float32, or use another optimizer"
            )

    def step(
        self, closure: Callable[[], Any] | None = None, *, found_inf: tenon.Tensor | None = None
    ) -> Any:
        """Minimise; the result is the loss at the start."""
        if found_inf is not None:
            raise TypeError(
                "LBFGS.step: expected no found_inf: its closure computes many gradients; use another "
                "optimizer with a GradScaler"
            )
        if closure is None:
            raise TypeError("LBFGS.step: expected a closure that computes the loss and gradients")
        group = self.param_groups[0]
        state = self.state.setdefault(group["params"][0], {"iterations": 0, "s": [], "y": []})
        with tenon.no_grad():
            return self._minimize(closure, group, state)

    def _minimize(
        self, closure: Callable[[], Any], group: dict[str, Any], state: dict[str, Any]
    ) -> Any:
        first, loss, grad = self._evaluate(closure)
        evaluations = 1
        for iteration in range(1, group["max_iter"] + 1):
            if tenon.max(tenon.abs(grad)).item() <= group["tolerance_grad"]:
                break
            state["iterations"] += 1
            if state["iterations"] == 1:
                direction = -grad
                rate = min(1.0, 1.0 / tenon.sum(tenon.abs(grad)).item()) * group["lr"]
            else:
                self._remember(state, grad - state["grad"], state["step"], group["history_size"])
                direction = -self._scaled(state, grad)
                rate = group["lr"]
            slope = tenon.dot(grad, direction).item()
            if slope > -group["tolerance_change"]:
                break
            before, state["grad"] = loss, grad
            last = iteration == group["max_iter"]
            if group["line_search_fn"] is None:
                self._move(direction, rate)
                if not last:
                    _, loss, grad = self._evaluate(closure)
                    evaluations += 1
            else:
                rate, loss, grad, calls = self._search(
                    closure, direction, rate, loss, slope, grad, group["tolerance_change"]
                )
                evaluations += calls
            state["step"] = direction * rate
            largest = tenon.max(tenon.abs(state["step"])).item()
            if (
                last
                or evaluations >= group["max_eval"]
                or largest <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float, Tensor]:
        """What the closure returned, the loss, and the gradients as one vector."""
        with tenon.enable_grad():
            result = closure()
        grads = [
            parts(tenon.zeros_like(p) if p.grad is None else p.grad)
            for p in self.param_groups[0]["params"]
        ]
        grad = tenon.concat([part.reshape([-1]) for part in grads])
        loss = float(result.item() if isinstance(result, Tensor) else result)
        maximize = self.param_groups[0]["maximize"]
        return result, -loss if maximize else loss, -grad if maximize else grad

    def _move(self, direction: Tensor, rate: float) -> None:
        start = 0
        for param in self.param_groups[0]["params"]:
            target = parts(param)
            part = direction[start : start + target.numel()].reshape([*target.shape])
            tenon.add(target, part * rate, out=target)
            start += target.numel()

    @staticmethod
    def _remember(state: dict[str, Any], y: Tensor, s: Tensor, limit: int) -> None:
        """Keep a pair of changes of gradient and parameters, unless the curvature is not positive."""
        if tenon.dot(y, s).item() <= 1e-10:
            return
        for name, tensor in (("s", s), ("y", y)):
            state[name] = [*state[name], tensor][-limit:]

    @staticmethod
    def _scaled(state: dict[str, Any], grad: Tensor) -> Tensor:
        """The inverse Hessian times the gradient (algorithm 7.4, the two-loop recursion)."""
        pairs = [(s, y, 1.0 / tenon.dot(y, s)) for s, y in zip(state["s"], state["y"])]
        weights = []
        q = grad
        for s, y, rho in reversed(pairs):
            weights.append(rho * tenon.dot(s, q))
            q = q - weights[-1] * y
        if pairs:
            _, y, rho = pairs[-1]
            q = q / (rho * tenon.dot(y, y))
        for (s, y, rho), weight in zip(pairs, reversed(weights)):
            q = q + (weight - rho * tenon.dot(y, q)) * s
        return q

    def _search(
        self,
        closure: Callable[[], Any],
        direction: Tensor,
        rate: float,
        loss: float,
        slope: float,
        grad: Tensor,
        tolerance: float,
        c1: float = 1e-4,
        c2: float = 0.9,
        limit: int = 25,
    ) -> tuple[float, float, Tensor, int]:
        """A rate that fulfils the strong Wolfe conditions (algorithms 3.5 and 3.6).

        The bracket [low, high] holds such a rate; each entry is (rate, loss, slope, gradient).
        Parameters are left at the rate that is returned.
        """
        at, length = 0.0, tenon.max(tenon.abs(direction)).item()

        def evaluate(where: float) -> tuple[float, float, float, Tensor]:
            nonlocal at
            self._move(direction, where - at)
            at = where
            _, value, gradient = self._evaluate(closure)
            return where, value, tenon.dot(gradient, direction).item(), gradient

        start = before = (0.0, loss, slope, grad)
        low = high = None
        calls = 0
        while calls < limit:
            point = evaluate(rate)
            calls += 1
            if point[1] > loss + c1 * rate * slope or (calls > 1 and point[1] >= before[1]):
                low, high = before, point
                break
            if abs(point[2]) <= -c2 * slope:
                return point[0], point[1], point[3], calls
            if point[2] >= 0.0:
                low, high = point, before
                break
            before, rate = point, rate * 2.0
        if low is None or high is None:
            low = high = before
        while calls < limit and abs(high[0] - low[0]) * length > tolerance:
            point = evaluate(_cubic_minimum(low, high))
            calls += 1
            if point[1] > loss + c1 * point[0] * slope or point[1] >= low[1]:
                high = point
                continue
            if abs(point[2]) <= -c2 * slope:
                low = point
                break
            if point[2] * (high[0] - low[0]) >= 0.0:
                high = low
            low = point
        best = low if low[1] <= loss else start
        self._move(direction, best[0] - at)
        return best[0], best[1], best[3], calls


def _cubic_minimum(a: tuple, b: tuple) -> float:
    """The minimum of the cubic through both ends (3.59), kept off the ends of the interval."""
    (x1, f1, g1, _), (x2, f2, g2, _) = (a, b) if a[0] <= b[0] else (b, a)
    width = x2 - x1
    d1 = g1 + g2 - 3.0 * (f2 - f1) / width
    square = d1 * d1 - g1 * g2
    middle = 0.5 * (x1 + x2)
    if square >= 0.0:
        d2 = square**0.5
        denominator = g2 - g1 + 2.0 * d2
        if denominator:
            middle = x2 - width * (g2 + d2 - d1) / denominator
    return min(max(middle, x1 + 0.1 * width), x2 - 0.1 * width)
