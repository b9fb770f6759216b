# SPDX-License-Identifier: Apache-2.0
"""torch.fft: tenon.fft with PyTorch's parameters, which call an axis `dim`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenon import _core
from tenon import fft as _fft
from tenon._core import Tensor
from tenon.compat.torch import _signatures
from tenon.compat.torch._options import kind

_OF_ONE_AXIS = "fft ifft rfft irfft hfft ihfft".split()
_OF_TWO_AXES = "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2".split()
_OF_AXES = "fftn ifftn rfftn irfftn hfftn ihfftn".split()

__all__ = _OF_ONE_AXIS + _OF_TWO_AXES + _OF_AXES + ["fftfreq", "rfftfreq", "fftshift", "ifftshift"]


def _along_axis(name: str) -> Callable[..., Any]:
    transform = getattr(_fft, name)

    def function(
        input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
    ) -> Tensor:
        if n is not None and n < 1:
            raise ValueError(f"fft.{name}(): expected n, a length of at least 1, got {n}")
        return transform(input, n=n, axis=dim, norm=norm or "backward")

    function.__name__, function.__doc__ = name, transform.__doc__
    return function


def _along_axes(name: str, default: tuple[int, int] | None) -> Callable[..., Any]:
    transform = getattr(_fft, name)

    def function(
        input: Tensor,
        s: Sequence[int] | None = None,
        dim: int | Sequence[int] | None = default,
        norm: str | None = None,
    ) -> Tensor:
        axes = (dim,) if isinstance(dim, int) else dim
        if s is not None:
            s = (s,) if isinstance(s, int) else tuple(s)
            # Lengths without axes are those of the last axes.
            axes = tuple(range(-len(s), 0)) if axes is None else axes
        result = transform(input, s=s, axes=axes, norm=norm or "backward")
        return result.clone() if result is input else result

    function.__name__, function.__doc__ = name, transform.__doc__
    return function


globals().update({name: _along_axis(name) for name in _OF_ONE_AXIS})
globals().update({name: _along_axes(name, (-2, -1)) for name in _OF_TWO_AXES})
globals().update({name: _along_axes(name, None) for name in _OF_AXES})


def _frequencies(name: str) -> Callable[..., Any]:
    frequencies = getattr(_fft, name)

    def function(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
        if d == 0:
            raise ValueError(
                f"fft.{name}(): expected d, the distance of samples, not to be 0, got {d}"
            )
        if dtype is not None and kind(_core.dtype(dtype)) < 2:
            raise TypeError(f"fft.{name}(): expected a floating dtype, got {dtype}")
        return frequencies(n, d=d, dtype=dtype, device=device)

    function.__name__, function.__doc__ = name, frequencies.__doc__
    return function


fftfreq, rfftfreq = _frequencies("fftfreq"), _frequencies("rfftfreq")


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Moves the frequency 0 to the middle of each axis of `dim`."""
    return _fft.fftshift(input, axes=dim)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Undoes fftshift."""
    return _fft.ifftshift(input, axes=dim)


_signatures.adapt_all("fft", __all__, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
