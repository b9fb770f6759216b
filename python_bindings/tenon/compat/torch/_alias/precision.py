# SPDX-License-Identifier: Apache-2.0
"""torch.amp, by PyTorch's signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tenon
from tenon import amp as _amp
from tenon._core import Tensor

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


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


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """For the forward method of an autograd.Function: what custom_bwd() decorates runs in the same precision. With
    `cast_inputs` floating arguments are cast to it in a region of autocast, and the method runs outside of the region."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = _amp.get_autocast_dtype() if device_type == "cpu" else None
        ctx._autocast_dtype = dtype if cast_inputs is None else None
        if cast_inputs is None or dtype is None:
            return fwd(ctx, *args, **kwargs)
        with _amp.autocast("bfloat16", enabled=False):
            return fwd(
                ctx,
                *(_cast(each, cast_inputs) for each in args),
                **{name: _cast(each, cast_inputs) for name, each in kwargs.items()},
            )

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Callable[..., Any]:
    """For the backward method, which runs in the precision of the forward one."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any) -> Any:
        dtype = ctx._autocast_dtype
        with _amp.autocast(dtype or "bfloat16", enabled=dtype is not None):
            return bwd(ctx, *args)

    return backward


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype=dtype) if value.dtype.is_floating_point else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(each, dtype) for each in value)
    return value
