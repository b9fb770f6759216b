# SPDX-License-Identifier: Apache-2.0
"""torch.amp, by PyTorch's signatures."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import amp as _amp

__all__ = ["GradScaler", "autocast", "is_autocast_available"]


class autocast(_amp.autocast):
    """tenon.amp.autocast, given the kind of device first. "cuda" is refused, unless `enabled` is false."""

    def __init__(
        self,
        device_type: Any = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):  # torch.cuda.amp.autocast(enabled)
            device_type, enabled = "cpu", bool(device_type)
        if enabled and device_type != "cpu":
            raise RuntimeError(
                f"autocast(): expected device_type 'cpu', got {device_type!r}, which is not there under the alias"
            )
        # PyTorch warns of other dtypes and goes on in full precision.
        known = dtype in (None, tenon.bfloat16, tenon.float16)
        super().__init__(dtype or "bfloat16" if known else "bfloat16", enabled=enabled and known)


class GradScaler(_amp.GradScaler):
    """tenon.amp.GradScaler, given the kind of device first."""

    def __init__(
        self,
        device: Any = "cpu",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not isinstance(device, str):  # torch.cuda.amp.GradScaler(init_scale)
            device, init_scale = "cpu", device
        super().__init__(
            init_scale,
            growth_factor,
            backoff_factor,
            growth_interval,
            enabled=enabled and device == "cpu",
        )


def is_autocast_available(device_type: str) -> bool:
    """Whether there is mixed precision on this kind of device."""
    return device_type == "cpu"
