# SPDX-License-Identifier: Apache-2.0
"""LookAhead: weights that follow those of another optimizer slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor, _core
from tenon._tensor.complex_parts import parts

from .master_weights import is_low_precision, master_weight
from .optimizer import Optimizer


class LookAhead(Optimizer):
    """After every `k` steps of `optimizer`, go from where they began `alpha` of the way to where they
    ended, and let it continue there (Zhang et al., 2019).

    Groups and options are those of `optimizer`. On devices that run behind the host, a step with
    `found_inf` waits for it. Programs refuse it, because they do not count steps.
    """

    def __init__(self, optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"LookAhead: expected an optimizer, got {type(optimizer).__name__}")
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"LookAhead: expected alpha from 0 to 1, got {alpha}")
        if k < 1:
            raise ValueError(f"LookAhead: expected k >= 1, got {k}")
        self.optimizer, self.alpha, self.k, self.steps = optimizer, alpha, k, 0
        self.defaults, self.param_groups = optimizer.defaults, optimizer.param_groups
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._last_step, self._schedules = None, optimizer._schedules

    def add_param_group(self, group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(group)

    def check_options(self, group: dict[str, Any]) -> None:
        self.optimizer.check_options(group)

    def step(
        self, closure: Callable[[], Any] | None = None, *, found_inf: Tensor | None = None
    ) -> Any:
        if _core.is_recording():
            raise RuntimeError(
                "LookAhead.step: expected a call that is not recorded: every k-th step does more, and the "
                "count goes past the program. Record the steps of its optimizer alone, or do not compile"
            )
        for param, trained in self._trained():
            if param not in self.state:
                self.state[param] = {"slow": trained.detach().clone()}
        loss = self.optimizer.step(closure, found_inf=found_inf)
        if found_inf is not None and found_inf.item():
            return loss
        self.steps += 1
        if self.steps % self.k == 0:
            with tenon.no_grad():
                for param, trained in self._trained():
                    slow = self.state[param]["slow"]
                    tenon.lerp(parts(slow), parts(trained), self.alpha, out=parts(slow))
                    trained.copy_(slow)
                    if trained is not param:
                        tenon.cast(trained, param.dtype, out=param)
        return loss

    def _trained(self) -> list[tuple[Tensor, Tensor]]:
        """Each parameter with the tensor that is updated: itself, or its master weight."""
        pairs = []
        for group in self.param_groups:
            for param in group["params"]:
                trained = param
                if group["multi_precision"] and is_low_precision(param):
                    trained = master_weight(param, self.optimizer.state.setdefault(param, {}))
                pairs.append((param, trained))
        return pairs

    def state_dict(self) -> dict[str, Any]:
        saved = super().state_dict()
        return {**saved, "steps": self.steps, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(saved["optimizer"])
        super().load_state_dict(saved)
        self.steps = saved["steps"]

    def __repr__(self) -> str:
        return f"LookAhead({self.optimizer!r}, alpha={self.alpha}, k={self.k})"
