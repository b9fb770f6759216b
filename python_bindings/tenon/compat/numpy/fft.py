# SPDX-License-Identifier: Apache-2.0
"""numpy.fft: Fourier transforms of tensors, arrays or lists; whole numbers are float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat._signed import bound
from tenon.compat.numpy._convert import as_float, as_tensor, kind_of
from tenon.compat.numpy._signatures import FFT

_REAL = ("rfft", "ihfft", "rfft2", "rfftn")


def _operand(name: str, a: Any) -> Tensor:
    x = as_float(a)
    if name in _REAL and kind_of(x.dtype) == "c":
        raise TypeError(f"fft.{name}(): expected real numbers, got {x.dtype}")
    return x.to(dtype=_core.float32) if x.dtype == _core.float16 else x


def _norm(norm: Any) -> str:
    return "backward" if norm is None else norm


def _along_axis(name: str) -> Callable[..., Tensor]:
    def function(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
        return getattr(tenon.fft, name)(_operand(name, a), n=n, axis=axis, norm=_norm(norm))

    function.__doc__ = f"tenon.fft.{name}, along one axis."
    return function


def _along_axes(name: str) -> Callable[..., Tensor]:
    of_all = name.replace("2", "n")

    def function(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
        x = _operand(name, a)
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        if axes is not None and len(axes) == 0:
            raise ValueError(f"fft.{name}(): expected at least one axis, got none")
        return getattr(tenon.fft, of_all)(x, s=s, axes=axes, norm=_norm(norm))

    function.__doc__ = f"tenon.fft.{name}, along several axes."
    return function


def _frequencies(name: str) -> Callable[..., Tensor]:
    def function(n: int, d: float = 1.0, device: Any = None) -> Tensor:
        if not isinstance(n, int):
            raise ValueError(f"fft.{name}(): expected a whole number n, got {n!r}")
        return getattr(tenon.fft, name)(n, d=d, dtype=_core.float64, device=device)

    function.__doc__ = f"tenon.fft.{name}, in float64."
    return function


def _shifted(name: str) -> Callable[..., Tensor]:
    def function(x: Any, axes: Any = None) -> Tensor:
        return getattr(tenon.fft, name)(as_tensor(x), axes=axes)

    function.__doc__ = f"tenon.fft.{name}."
    return function


for _name, _signature in FFT.items():
    if _name.endswith("freq"):
        _made = _frequencies(_name)
    elif _name.endswith("shift"):
        _made = _shifted(_name)
    elif _name[-1] in "2n":
        _made = _along_axes(_name)
    else:
        _made = _along_axis(_name)
    globals()[_name] = bound(f"tenon.compat.numpy.fft.{_name}", _signature, _made)

__all__ = sorted(FFT)


def __dir__() -> list[str]:
    return __all__
