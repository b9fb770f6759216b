# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms, as in the array API standard's extension `fft` and in numpy.fft.

`n` and `s` are lengths to which an operand is cut, or filled up with zeros, before. `norm` says which
direction is divided by the number of elements: "backward", "forward", or "ortho" for the square root in
both. Integers become float32; float16 and bfloat16 are refused, as in `tenon.linalg`.
"""

from math import sqrt as _sqrt

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator

_NORMS = {"backward": "forward", "forward": "backward", "ortho": "ortho"}  # of the other direction


# -- arguments ---------------------------------------------------------------------------------------


def _tensor(x, function):
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{function}(): expected a tensor, got {type(x).__name__}; convert it with tenon.tensor(...)"
        )
    if x.ndim == 0:
        raise ValueError(f"{function}(): expected at least one axis, got a 0-d tensor")
    if x.dtype.is_integer or x.dtype == _core.bool:
        return x.to(_core.float32)
    return x


def _real(x, function):
    x = _tensor(x, function)
    if x.dtype.is_complex:
        raise TypeError(
            f"{function}(): expected real numbers, got {x.dtype}; use fft() for complex ones"
        )
    return x


def _complex(x):
    if x.dtype.is_complex:
        return x
    return x.to(_core.complex128 if x.dtype == _core.float64 else _core.complex64)


def _axis(x, axis, function):
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(
            f"{function}(): expected an axis from {-x.ndim} to {x.ndim - 1}, got {axis}"
        )
    return axis % x.ndim


def _axes_of(x, s, axes, function):
    """The axes, and a length for each; None: that of `x`."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    axes = [_axis(x, axis, function) for axis in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{function}(): expected different axes, got {axes}")
    lengths = [None] * len(axes) if s is None else [None if n in (None, -1) else n for n in s]
    if len(lengths) != len(axes):
        raise ValueError(
            f"{function}(): expected a length for each axis, got {len(lengths)} for {len(axes)}"
        )
    return axes, lengths


def _resized(x, axes, lengths, function):
    for axis, length in zip(axes, lengths):
        if length is None:
            continue
        if length < 1:
            raise ValueError(f"{function}(): expected lengths of at least 1, got {length}")
        extent = x.shape[axis]
        if length < extent:
            x = _operator("narrow")(x, axis, 0, length)
        elif length > extent:
            margins = [0] * (2 * x.ndim)
            margins[2 * axis + 1] = length - extent
            x = _operator("pad")(x, margins)
    return x


def _scale(norm, count, forward, function):
    if norm is None:
        norm = "backward"
    if norm not in _NORMS:
        raise ValueError(
            f"{function}(): expected norm 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    if norm == "ortho":
        return 1 / _sqrt(count)
    return 1 / count if (norm == "forward") == forward else 1.0


def _count(x, axes):
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return max(count, 1)  # the operators refuse an axis without elements


# -- the three kinds ---------------------------------------------------------------------------------


def _complex_transform(x, s, axes, norm, forward, function):
    x = _tensor(x, function)
    axes, lengths = _axes_of(x, s, axes, function)
    if not axes:
        return _complex(x)
    x = _resized(x, axes, lengths, function)
    scale = _scale(norm, _count(x, axes), forward, function)
    if x.dtype.is_complex:
        return _operator("fft_c2c")(x, axes, forward, scale)
    spectrum = _operator("fft_r2c")(x, axes, False, scale)
    return spectrum if forward else _operator("conj")(spectrum)


def _from_real(x, s, axes, norm, conjugates, function):
    x = _real(x, function)
    axes, lengths = _axes_of(x, s, axes, function)
    if not axes:
        raise ValueError(f"{function}(): expected at least one axis, got none")
    x = _resized(x, axes, lengths, function)
    scale = _scale(norm, _count(x, axes), True, function)
    spectrum = _operator("fft_r2c")(x, axes, True, scale)
    return _operator("conj")(spectrum) if conjugates else spectrum


def _to_real(x, s, axes, norm, conjugates, function):
    x = _complex(_tensor(x, function))
    axes, lengths = _axes_of(x, s, axes, function)
    if not axes:
        raise ValueError(f"{function}(): expected at least one axis, got none")
    n = lengths[-1]
    if n is None:
        n = 2 * (x.shape[axes[-1]] - 1)
    if n < 1:
        raise ValueError(
            f"{function}(): expected a result of at least 1 element, got {n}; give its length"
        )
    x = _resized(x, axes, [*lengths[:-1], n // 2 + 1], function)
    scale = _scale(norm, _count(x, axes[:-1]) * n, False, function)
    if conjugates:
        x = _operator("conj")(x)
    return _operator("fft_c2r")(x, axes, n, scale)


def _lengths(n):
    return None if n is None else [n]


# -- functions ---------------------------------------------------------------------------------------


def fft(x, /, n=None, axis=-1, norm="backward"):
    """Transform along one axis."""
    return _complex_transform(x, _lengths(n), [axis], norm, True, "fft")


def ifft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse of fft()."""
    return _complex_transform(x, _lengths(n), [axis], norm, False, "ifft")


def fft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Transform along two axes."""
    return _complex_transform(x, s, axes, norm, True, "fft2")


def ifft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Inverse of fft2()."""
    return _complex_transform(x, s, axes, norm, False, "ifft2")


def fftn(x, /, s=None, axes=None, norm="backward"):
    """Transform along several axes, all of them by default."""
    return _complex_transform(x, s, axes, norm, True, "fftn")


def ifftn(x, /, s=None, axes=None, norm="backward"):
    """Inverse of fftn()."""
    return _complex_transform(x, s, axes, norm, False, "ifftn")


def rfft(x, /, n=None, axis=-1, norm="backward"):
    """The first half, from 0 to n / 2, of the transform of real numbers; the others are its conjugates."""
    return _from_real(x, _lengths(n), [axis], norm, False, "rfft")


def irfft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse of rfft() for a result of length `n`, by default an even one."""
    return _to_real(x, _lengths(n), [axis], norm, False, "irfft")


def rfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Transform of real numbers along two axes, the last of which has the first half of the result."""
    return _from_real(x, s, axes, norm, False, "rfft2")


def irfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Inverse of rfft2()."""
    return _to_real(x, s, axes, norm, False, "irfft2")


def rfftn(x, /, s=None, axes=None, norm="backward"):
    """Transform of real numbers along several axes, the last of which has the first half of the result."""
    return _from_real(x, s, axes, norm, False, "rfftn")


def irfftn(x, /, s=None, axes=None, norm="backward"):
    """Inverse of rfftn()."""
    return _to_real(x, s, axes, norm, False, "irfftn")


def hfft(x, /, n=None, axis=-1, norm="backward"):
    """Transform, real, of numbers of which the first half is given and the others are conjugates."""
    return _to_real(x, _lengths(n), [axis], _NORMS.get(norm or "backward", norm), True, "hfft")


def ihfft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse of hfft()."""
    return _from_real(x, _lengths(n), [axis], _NORMS.get(norm or "backward", norm), True, "ihfft")


def hfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """hfft() along the last of two axes and fft() along the other."""
    return _to_real(x, s, axes, _NORMS.get(norm or "backward", norm), True, "hfft2")


def ihfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Inverse of hfft2()."""
    return _from_real(x, s, axes, _NORMS.get(norm or "backward", norm), True, "ihfft2")


def hfftn(x, /, s=None, axes=None, norm="backward"):
    """hfft() along the last of several axes and fft() along the others."""
    return _to_real(x, s, axes, _NORMS.get(norm or "backward", norm), True, "hfftn")


def ihfftn(x, /, s=None, axes=None, norm="backward"):
    """Inverse of hfftn()."""
    return _from_real(x, s, axes, _NORMS.get(norm or "backward", norm), True, "ihfftn")


# -- helpers -----------------------------------------------------------------------------------------


def _frequencies(first, second, n, d, dtype, device, function):
    if n < 1:
        raise ValueError(f"{function}(): expected n of at least 1, got {n}")
    dtype = _core.float32 if dtype is None else _core.dtype(dtype)
    arange = _operator("arange")
    parts = [
        arange(low, high, 1, dtype=_core.float64, device=device) for low, high in (first, second)
    ]
    return (_operator("concat")(parts, 0) * (1.0 / (n * d))).to(dtype)


def fftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """The frequencies of the elements of fft() of `n` samples that are `d` apart."""
    return _frequencies((0, (n + 1) // 2), (-(n // 2), 0), n, d, dtype, device, "fftfreq")


def rfftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """The frequencies of the elements of rfft() of `n` samples that are `d` apart."""
    return _frequencies((0, n // 2 + 1), (0, 0), n, d, dtype, device, "rfftfreq")


def _shift(x, axes, function, amount):
    if not isinstance(x, Tensor):
        raise TypeError(f"{function}(): expected a tensor, got {type(x).__name__}")
    if isinstance(axes, int):
        axes = [axes]
    axes = [_axis(x, axis, function) for axis in (range(x.ndim) if axes is None else axes)]
    return _operator("roll")(x, [amount(x.shape[axis]) for axis in axes], axes) if axes else x


def fftshift(x, /, *, axes=None):
    """Moves the frequency zero to the middle."""
    return _shift(x, axes, "fftshift", lambda n: n // 2)


def ifftshift(x, /, *, axes=None):
    """Inverse of fftshift()."""
    return _shift(x, axes, "ifftshift", lambda n: -(n // 2))


def __dir__():
    return sorted({name for name in globals() if not name.startswith("_")} - {"Tensor"})
