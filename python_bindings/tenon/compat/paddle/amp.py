# SPDX-License-Identifier: Apache-2.0
"""paddle.amp: mixed precision with Paddle's parameters and defaults; names in lists of operators are Tenon's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tenon
from tenon.amp import is_autocast_enabled as _is_enabled

__all__ = ["GradScaler", "auto_cast", "is_autocast_enabled"]


class auto_cast(tenon.amp.autocast):
    """A block, or a function as a decorator, whose operators compute in mixed precision."""

    def __init__(
        self,
        enable: bool = True,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        level: str = "O1",
        dtype: str = "float16",
        use_promote: bool = True,
    ) -> None:
        if not use_promote:
            raise NotImplementedError("auto_cast(): expected use_promote=True, got False")
        super().__init__(dtype, level, enable, custom_white_list, custom_black_list)


class GradScaler(tenon.amp.GradScaler):
    """Scales losses, so that gradients in float16 are not lost."""

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        if enable and not use_dynamic_loss_scaling:
            raise NotImplementedError(
                "GradScaler(): expected use_dynamic_loss_scaling=True, got False"
            )
        self._init_loss_scaling = init_loss_scaling
        super().__init__(
            init_loss_scaling,
            incr_ratio,
            decr_ratio,
            incr_every_n_steps,
            decr_every_n_nan_or_inf,
            enable,
        )

    def minimize(self, optimizer: Any, loss: tenon.Tensor) -> None:
        """step() and update(), after backward() of the scaled loss."""
        if not isinstance(loss, tenon.Tensor):
            raise TypeError(
                f"GradScaler.minimize: expected the scaled loss, got {type(loss).__name__}"
            )
        self.step(optimizer)
        self.update()

    def is_enable(self) -> bool:
        return self.is_enabled()

    def is_use_dynamic_loss_scaling(self) -> bool:
        return self.is_enabled()

    def get_init_loss_scaling(self) -> float:
        return self._init_loss_scaling

    def get_incr_ratio(self) -> float:
        return self.growth_factor

    def get_decr_ratio(self) -> float:
        return self.backoff_factor

    def get_incr_every_n_steps(self) -> int:
        return self.growth_interval

    def get_decr_every_n_nan_or_inf(self) -> int:
        return self.backoff_interval


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Whether this thread is in a block that casts."""
    if device_type is not None:
        raise NotImplementedError(
            f"is_autocast_enabled(): expected device_type=None, got {device_type!r}: a block is for all devices"
        )
    return _is_enabled()
