# SPDX-License-Identifier: Apache-2.0
"""paddle.signal: short-time Fourier transforms by Paddle's parameters."""

from __future__ import annotations

import tenon
from tenon._core import Tensor
from tenon.compat._signed import bound
from tenon.compat.paddle._signatures import SIGNAL


def _stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> Tensor:
    """Transforms of frames: [..., frequencies, frames]."""
    if onesided not in (None, True, False):
        raise TypeError(f"signal.stft(): expected onesided True, False or None, got {onesided!r}")
    return tenon.signal.stft(
        x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided
    )


def _istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft() is `x`."""
    return tenon.signal.istft(
        x,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        normalized,
        onesided,
        length,
        return_complex,
    )


stft = bound("tenon.compat.paddle.signal.stft", SIGNAL["stft"], _stft, ignored=frozenset({"name"}))
istft = bound(
    "tenon.compat.paddle.signal.istft", SIGNAL["istft"], _istft, ignored=frozenset({"name"})
)

__all__ = ["istft", "stft"]


def __dir__() -> list[str]:
    return __all__
