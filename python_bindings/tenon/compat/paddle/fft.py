# SPDX-License-Identifier: Apache-2.0
"""paddle.fft: Fourier transforms by Paddle's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat._signed import bound
from tenon.compat.paddle._signatures import FFT


def _along_axis(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, n: Any = None, axis: int | None = -1, norm: str = "backward") -> Tensor:
        return getattr(tenon.fft, name)(x, n=n, axis=-1 if axis is None else axis, norm=norm)

    function.__doc__ = f"tenon.fft.{name}, along one axis."
    return function


def _along_axes(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        if name.endswith("2") and axes is None:
            axes = (-2, -1)
        if name.endswith("2") and len(axes) != 2:
            raise ValueError(f"fft.{name}(): expected two axes, got {axes}")
        return getattr(tenon.fft, name.replace("2", "n"))(x, s=s, axes=axes, norm=norm)

    function.__doc__ = f"tenon.fft.{name}, along several axes."
    return function


def _frequencies(name: str) -> Callable[..., Tensor]:
    def function(
        n: int, d: float = 1.0, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        if dtype is not None and not tenon.dtype(dtype).is_floating_point:
            raise TypeError(f"fft.{name}(): expected a dtype of floats, got {dtype}")
        made = getattr(tenon.fft, name)(n, d=d, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made

    function.__doc__ = f"tenon.fft.{name}."
    return function


def _shifted(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, axes: Any = None) -> Tensor:
        return getattr(tenon.fft, name)(x, axes=axes)

    function.__doc__ = f"tenon.fft.{name}."
    return function


for _name, _signature in FFT.items():
    if _name.endswith("freq"):
        _made = _frequencies(_name)
    elif _name.endswith("shift"):
        _made = _shifted(_name)
    elif not hasattr(tenon.fft, _name.replace("2", "n")):
        continue
    else:
        _made = _along_axes(_name) if _name[-1] in "2n" else _along_axis(_name)
    globals()[_name] = bound(
        f"tenon.compat.paddle.fft.{_name}", _signature, _made, ignored=frozenset({"name"})
    )

__all__ = sorted(each for each in FFT if each in globals())


def __dir__() -> list[str]:
    return __all__
