# SPDX-License-Identifier: Apache-2.0
"""Dynamic loss scaling, so that small gradients are not lost in float16."""

from __future__ import annotations

from enum import Enum
from typing import Any

import tenon
from tenon import Tensor
from tenon.optim import Optimizer
from tenon.optim.optimizer import parts


class _Stage(Enum):
    READY = "ready"
    UNSCALED = "unscaled"
    STEPPED = "stepped"


class _OptimizerState:
    """Of one optimizer, between two calls of update()."""

    def __init__(self) -> None:
        self.stage = _Stage.READY
        self.found_inf: dict[str, Tensor] = {}  # by device: 1 if a gradient there was not finite


class GradScaler:
    """Scales losses, so that gradients in float16 do not underflow (Micikevicius et al., 2018).

        scaler = tenon.amp.GradScaler()
        for x, target in loader:
            with tenon.amp.autocast(dtype="float16"):
                loss = loss_of(model(x), target)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # only to look at gradients or to clip them
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()

    A step whose gradients are infinite or NaN is left out, and the scale multiplied by
    `backoff_factor` after `backoff_interval` of them in a row (1); after `growth_interval` good steps in
    a row it is multiplied by `growth_factor`. Loss, scale and counts stay on the device of the loss: no
    step waits for it. bfloat16 has the range of float32 and needs no scaling.

    With `enabled=False` every method does what is done without a scaler.
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        backoff_interval: int = 1,
        enabled: bool = True,
    ) -> None:
        if not init_scale > 0.0:
            raise ValueError(f"GradScaler: expected init_scale > 0, got {init_scale}")
        if not growth_factor > 1.0:
            raise ValueError(f"GradScaler: expected growth_factor > 1, got {growth_factor}")
        if not 0.0 < backoff_factor < 1.0:
            raise ValueError(
                f"GradScaler: expected backoff_factor between 0 and 1, got {backoff_factor}"
            )
        for name, interval in (("growth", growth_interval), ("backoff", backoff_interval)):
            if interval < 1:
                raise ValueError(f"GradScaler: expected {name}_interval >= 1, got {interval}")
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.backoff_interval = growth_interval, backoff_interval
        self._enabled = bool(enabled)
        self._start = (float(init_scale), 0.0)  # scale and tracker, until a device is known
        self._scale: Tensor | None = None
        self._tracker: Tensor | None = None
        # Optimizers are kept until update(), so that no other one gets the state of one that is gone.
        self._states: dict[int, tuple[Optimizer, _OptimizerState]] = {}

    def is_enabled(self) -> bool:
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A loss, or a list or tuple of them, times the scale. A float16 loss becomes float32."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(self.scale(each) for each in outputs)
        if not isinstance(outputs, Tensor):
            raise TypeError(
                f"GradScaler.scale: expected a Tensor or a list of them, got "
                f"{type(outputs).__name__}"
            )
        return outputs * self._scale_on(outputs.device)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of `optimizer` by the scale, in place. step() does it otherwise."""
        if not self._enabled:
            return
        state = self._state_of(optimizer)
        if state.stage is not _Stage.READY:
            raise RuntimeError(
                f"GradScaler.unscale_: expected a call once between two calls of update(), but "
                f"{type(optimizer).__name__} was {state.stage.value} already"
            )
        params = [param for group in optimizer.param_groups for param in group["params"]]
        self._expect_whole(params)
        grads = [param.grad for param in params if param.grad is not None]
        if not grads:
            raise RuntimeError(
                f"GradScaler: {type(optimizer).__name__} has no parameter with a gradient; call "
                "backward() of the scaled loss first"
            )
        inverses: dict[str, Tensor] = {}
        with tenon.no_grad():
            for grad in grads:
                place = str(grad.device)
                if place not in inverses:
                    inverses[place] = 1.0 / self._scale_on(grad.device)
                    state.found_inf[place] = tenon.zeros([], device=grad.device)
                found = state.found_inf[place]
                grad = self._written(grad)
                tenon.check_finite_and_unscale(grad, inverses[place], found, out=(grad, found))
        state.stage = _Stage.UNSCALED

    def step(self, optimizer: Optimizer) -> None:
        """optimizer.step(), unless a gradient is infinite or NaN."""
        if not self._enabled:
            optimizer.step()
            return
        state = self._state_of(optimizer)
        if state.stage is _Stage.STEPPED:
            raise RuntimeError(
                f"GradScaler.step: expected a call once between two calls of update(), but "
                f"{type(optimizer).__name__} was stepped already"
            )
        if state.stage is _Stage.READY:
            self.unscale_(optimizer)
        optimizer.step(found_inf=self._found_inf([state]))
        state.stage = _Stage.STEPPED

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Choose the scale of the next step, after all optimizers were stepped; or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            if self._scale is None:
                self._start = (float(new_scale), self._start[1])
            else:
                self._scale = tenon.full([], float(new_scale), device=self._scale.device)
        else:
            states = [state for _, state in self._states.values() if state.found_inf]
            if not states or self._scale is None or self._tracker is None:
                raise RuntimeError(
                    "GradScaler.update: expected step() or unscale_() of an optimizer before it"
                )
            with tenon.no_grad():
                self._scale, self._tracker = tenon.update_loss_scaling(
                    self._scale,
                    self._tracker,
                    self._found_inf(states),
                    growth_factor=self.growth_factor,
                    backoff_factor=self.backoff_factor,
                    growth_interval=self.growth_interval,
                    backoff_interval=self.backoff_interval,
                )
        self._states.clear()

    def get_scale(self) -> float:
        """The scale as a number. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._start[0] if self._scale is None else float(self._scale.item())

    # -- saving ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Scale, count and settings; empty if the scaler is not enabled."""
        if not self._enabled:
            return {}
        tracker = self._start[1] if self._tracker is None else float(self._tracker.item())
        return {
            "scale": self.get_scale(),
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
            "backoff_interval": self.backoff_interval,
            "tracker": tracker,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from `saved`."""
        if not self._enabled:
            return
        missing = sorted(set(self.state_dict()) - set(saved))
        if missing:
            raise ValueError(
                f"GradScaler.load_state_dict: expected the keys of state_dict(), {missing} are "
                "missing; was it saved by a scaler that was not enabled?"
            )
        self.growth_factor, self.backoff_factor = saved["growth_factor"], saved["backoff_factor"]
        self.growth_interval = saved["growth_interval"]
        self.backoff_interval = saved["backoff_interval"]
        self._start = (float(saved["scale"]), float(saved["tracker"]))
        self._scale = self._tracker = None
        self._states.clear()

    # -- parts -------------------------------------------------------------------------------------

    def _expect_whole(self, params: list[Tensor]) -> None:
        """Ranks must leave out a step together."""
        for param in params:
            is_part = getattr(param, "is_part", False) or param.layout == "sharded"
            if is_part or getattr(param, "expert_place", None) is not None:
                raise ValueError(
                    "GradScaler: expected parameters that all ranks have, got one of shape "
                    f"{tuple(param.shape)} of which other ranks have other parts, and may find other numbers; use "
                    "tenon.distributed.GradScaler"
                )

    @staticmethod
    def _written(grad: Tensor) -> Tensor:
        """What of a gradient is read and written: of a complex one its parts."""
        return parts(grad)

    def _scale_on(self, device: tenon.device) -> Tensor:
        if self._scale is None:
            self._scale = tenon.full([], self._start[0], device=device)
            self._tracker = tenon.full([], self._start[1], device=device)
        return self._scale.to(device)

    def _state_of(self, optimizer: Optimizer) -> _OptimizerState:
        return self._states.setdefault(id(optimizer), (optimizer, _OptimizerState()))[1]

    @staticmethod
    def _found_inf(states: list[_OptimizerState]) -> Tensor:
        """1 if one of the states has found something, on the device of the first."""
        found = [flag for state in states for flag in state.found_inf.values()]
        whole = found[0]
        for flag in found[1:]:
            whole = tenon.maximum(whole, flag.to(whole.device))
        return whole

    def __repr__(self) -> str:
        return f"GradScaler(scale={self.get_scale()}, enabled={self._enabled})"
