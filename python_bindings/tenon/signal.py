# SPDX-License-Identifier: Apache-2.0
"""Windows, frames and short-time Fourier transforms.

Signals are in the last axis, and leading axes are batches. Names and arguments are those of PyTorch and
Paddle where both have a function.
"""

from math import pi as _pi

from tenon import _core
from tenon import fft as _fft
from tenon._core import operator as _operator
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors

# -- windows -----------------------------------------------------------------------------------------


def _window(length, periodic, dtype, device, function, values):
    """`values` of the positions from 0 to 1 of the elements."""
    if length < 0:
        raise ValueError(f"{function}(): expected a length of at least 0, got {length}")
    dtype = _core.float32 if dtype is None else _core.dtype(dtype)
    if length < 2:
        return _operator("ones")([length], dtype=dtype, device=device)
    positions = _operator("arange")(0, length, 1, dtype=_core.float64, device=device)
    return values(positions / (length if periodic else length - 1)).to(dtype)


def _cosines(coefficients):
    def values(positions):
        total = coefficients[0]
        for k, coefficient in enumerate(coefficients[1:], 1):
            total = total + _operator("cos")(positions * (2 * _pi * k)) * coefficient
        return total

    return values


def hann_window(length, periodic=True, *, dtype=None, device=None):
    """`0.5 - 0.5 cos(2 pi x)`. A periodic window is the longer symmetric one without its last element."""
    return _window(length, periodic, dtype, device, "hann_window", _cosines([0.5, -0.5]))


def hamming_window(length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, device=None):
    """`alpha - beta cos(2 pi x)`."""
    return _window(length, periodic, dtype, device, "hamming_window", _cosines([alpha, -beta]))


def blackman_window(length, periodic=True, *, dtype=None, device=None):
    """`0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x)`."""
    return _window(length, periodic, dtype, device, "blackman_window", _cosines([0.42, -0.5, 0.08]))


def bartlett_window(length, periodic=True, *, dtype=None, device=None):
    """A triangle from 0 to 1 and back."""
    return _window(
        length,
        periodic,
        dtype,
        device,
        "bartlett_window",
        lambda positions: 1 - abs(positions * 2 - 1),
    )


def kaiser_window(length, periodic=True, beta=12.0, *, dtype=None, device=None):
    """`I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta)` with the modified Bessel function `I0`."""

    def values(positions):
        at = positions * 2 - 1
        inside = _operator("sqrt")(_operator("clip")(1 - at * at, 0, None)) * beta
        return _operator("i0")(inside) / _operator("i0")(inside[:1] * 0 + beta)

    return _window(length, periodic, dtype, device, "kaiser_window", values)


# -- frames ------------------------------------------------------------------------------------------


def frame(x, frame_length, hop_length):
    """Pieces of `frame_length` elements, `hop_length` apart: [..., frame_length, frames]. A view."""
    return _operator("transpose")(_operator("sliding_window")(x, -1, frame_length, hop_length))


def overlap_add(x, hop_length):
    """Sums of frames [..., frame_length, frames] that are `hop_length` apart; the adjoint of frame()."""
    return _operator("overlap_add")(x, hop_length)


# -- short-time transforms ---------------------------------------------------------------------------


def _prepared_window(window, win_length, n_fft, like, function):
    if not 0 < win_length <= n_fft:
        raise ValueError(
            f"{function}(): expected win_length from 1 to n_fft = {n_fft}, got {win_length}"
        )
    if window is None:
        window = _operator("ones")([win_length], dtype=like, device=None)
    elif tuple(window.shape) != (win_length,):
        raise ValueError(
            f"{function}(): expected a window of shape ({win_length},), got {tuple(window.shape)}"
        )
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        window = _operator("pad")(window, [left, n_fft - win_length - left])
    return window


def stft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
):
    """Transforms of frames of `n_fft` elements, `hop_length` (by default n_fft / 4) apart and multiplied
    by `window`: [..., frequencies, frames]. With `center`, frame i is around element i * hop_length, and
    the signal is continued by `pad_mode`. `normalized` divides by sqrt(n_fft). Real signals have
    n_fft / 2 + 1 frequencies if `onesided`, which is their default."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if x.ndim == 0 or n_fft < 1 or hop_length < 1:
        raise ValueError(
            f"stft(): expected a signal of at least one axis, and n_fft and hop_length of at least 1, "
            f"got {x.ndim} axes, {n_fft} and {hop_length}"
        )
    is_complex = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise ValueError(
            "stft(): expected a real signal and window for onesided=True, got complex numbers"
        )
    real = _core.float64 if x.dtype in (_core.float64, _core.complex128) else _core.float32
    window = _prepared_window(window, win_length, n_fft, real, "stft").to(x.device)
    if center:
        half = n_fft // 2
        x = _operator("pad")(x, [0] * (2 * x.ndim - 2) + [half, half], pad_mode)
    if x.shape[-1] < n_fft:
        raise ValueError(
            f"stft(): expected a signal of at least n_fft = {n_fft} elements, got {x.shape[-1]}"
        )
    frames = _operator("sliding_window")(x, -1, n_fft, hop_length) * window
    norm = "ortho" if normalized else "backward"
    spectra = _fft.rfft(frames, norm=norm) if onesided else _fft.fft(frames, norm=norm)
    return _operator("transpose")(spectra)


def istft(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose stft() is `x`, or the nearest one in the sense of least squares. `length` is that
    of the result; otherwise it ends with the last frame."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    onesided = not return_complex if onesided is None else onesided
    rows = n_fft // 2 + 1 if onesided else n_fft
    if x.ndim < 2 or x.shape[-2] != rows or x.shape[-1] < 1 or not x.dtype.is_complex:
        raise ValueError(
            f"istft(): expected complex numbers of shape (..., {rows}, frames), got {x.dtype} and shape "
            f"{tuple(x.shape)}"
        )
    if hop_length < 1:
        raise ValueError(f"istft(): expected hop_length of at least 1, got {hop_length}")
    real = _core.float64 if x.dtype == _core.complex128 else _core.float32
    window = _prepared_window(window, win_length, n_fft, real, "istft").to(x.device)
    spectra = _operator("transpose")(x)
    norm = "ortho" if normalized else "backward"
    if onesided:
        frames = _fft.irfft(spectra, n_fft, norm=norm)
    else:
        frames = _fft.ifft(spectra, norm=norm)
        if not return_complex:
            frames = _operator("real")(frames)
    count = x.shape[-1]
    conjugate = _operator("conj")(window)  # the adjoint of what stft() multiplies by
    total = overlap_add(_operator("transpose")(frames * conjugate), hop_length)
    weights = (window * conjugate).unsqueeze(-1)
    weights = overlap_add(_operator("expand")(weights, [n_fft, count]), hop_length)
    start = n_fft // 2 if center else 0
    extent = total.shape[-1]
    end = extent - n_fft // 2 if center else extent
    if length is not None:
        end = min(start + length, extent)
    total, weights = total[..., start:end], weights[start:end]
    if weights.numel() and float(abs(weights).min()) < 1e-11:
        raise ValueError(
            "istft(): expected windows that overlap without gaps, got a sum of squares of 0; use a "
            "smaller hop_length, center=True, or a window without zeros"
        )
    total = total / weights
    missing = 0 if length is None else length - total.shape[-1]
    if missing > 0:
        total = _operator("pad")(total, [0] * (2 * total.ndim - 2) + [0, missing])
    return total


_expect_tensors(globals())


def __dir__():
    return sorted({name for name in globals() if not name.startswith("_")})
