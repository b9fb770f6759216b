# SPDX-License-Identifier: Apache-2.0
"""torch.signal.windows: windows of M elements, a vector each.

A symmetric window (`sym`, the default) ends as it starts. Otherwise it is periodic: the symmetric one
of M + 1 elements without its last one, for spectra. The formulas are those of scipy.signal.windows
(Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, 1978).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.torch import _signatures

__all__ = """bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser
nuttall""".split()


def _window(
    name: str,
    M: int,
    sym: bool,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    values: Callable[[Tensor, int], Tensor],
) -> Tensor:
    """`values` of the indices 0 to M - 1, in float64, and of the intervals between first and last."""
    if isinstance(M, bool) or not isinstance(M, int) or M < 0:
        raise ValueError(f"{name}(): expected M, a length of at least 0, got {M!r}")
    dtype = _core.get_default_dtype() if dtype is None else _core.dtype(dtype)
    if not dtype.is_floating_point:
        raise ValueError(f"{name}(): expected a floating dtype, got {dtype}; pass dtype=float32")
    if M == 0:
        result = tenon.zeros([0], dtype=dtype, device=device)
    elif M == 1:
        result = tenon.ones([1], dtype=dtype, device=device)
    else:
        indices = tenon.arange(0, M, 1, dtype=tenon.float64, device=device)
        result = values(indices, M - 1 if sym else M).to(dtype)
    return result.requires_grad_() if requires_grad else result


def _cosines(coefficients: Sequence[float]) -> Callable[[Tensor, int], Tensor]:
    def values(indices: Tensor, intervals: int) -> Tensor:
        result = tenon.zeros_like(indices)
        for order, coefficient in enumerate(coefficients):
            sign = -1.0 if order % 2 else 1.0
            result = result + tenon.cos(indices * (2 * math.pi * order / intervals)) * (
                sign * coefficient
            )
        return result

    return values


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of `(-1)^k a[k] cos(2 pi k n / N)`."""
    coefficients = [float(each) for each in a]
    if not coefficients:
        raise ValueError("general_cosine(): expected at least one coefficient in a, got none")
    return _window("general_cosine", M, sym, dtype, device, requires_grad, _cosines(coefficients))


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - (1 - alpha) cos(2 pi n / N)`."""
    coefficients = [alpha, 1.0 - alpha]
    return _window("general_hamming", M, sym, dtype, device, requires_grad, _cosines(coefficients))


def _of_cosines(name: str, coefficients: Sequence[float], formula: str) -> Callable[..., Tensor]:
    values = _cosines(coefficients)

    def function(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window(name, M, sym, dtype, device, requires_grad, values)

    function.__name__, function.__doc__ = name, formula
    return function


hamming = _of_cosines("hamming", [0.54, 0.46], "`0.54 - 0.46 cos(2 pi n / N)`.")
hann = _of_cosines("hann", [0.5, 0.5], "`0.5 - 0.5 cos(2 pi n / N)`.")
blackman = _of_cosines(
    "blackman", [0.42, 0.5, 0.08], "`0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)`."
)
nuttall = _of_cosines(
    "nuttall",
    [0.3635819, 0.4891775, 0.1365995, 0.0106411],
    "Four cosines of Blackman-Harris' kind with Nuttall's coefficients (Nuttall, Some windows with very "
    "good sidelobe behavior, 1981).",
)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A triangle: `1 - abs(2 n / N - 1)`."""
    return _window(
        "bartlett",
        M,
        sym,
        dtype,
        device,
        requires_grad,
        lambda indices, intervals: 1 - tenon.abs(indices * (2 / intervals) - 1),
    )


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Half a wave: `sin(pi (n + 0.5) / M)`, of M + 1 for the periodic window."""
    return _window(
        "cosine",
        M,
        sym,
        dtype,
        device,
        requires_grad,
        lambda indices, intervals: tenon.sin((indices + 0.5) * (math.pi / (intervals + 1))),
    )


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-abs(n - center) / tau)`; symmetric windows have their centre in the middle."""
    if tau <= 0:
        raise ValueError(f"exponential(): expected tau above 0, got {tau}")
    if sym and center is not None:
        raise ValueError(
            f"exponential(): expected no center for a symmetric window, got {center}; pass sym=False"
        )

    if center is not None and M == 1:
        value = math.exp(-abs(center) / tau)
        one = _window("exponential", M, sym, dtype, device, False, lambda indices, _: indices)
        return tenon.full_like(one, value).requires_grad_(requires_grad)

    def values(indices: Tensor, intervals: int) -> Tensor:
        middle = intervals / 2 if center is None else center
        return tenon.exp(-tenon.abs(indices - middle) / tau)

    return _window("exponential", M, sym, dtype, device, requires_grad, values)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-(n - N / 2)^2 / (2 std^2))`."""
    if std <= 0:
        raise ValueError(f"gaussian(): expected std above 0, got {std}")
    return _window(
        "gaussian",
        M,
        sym,
        dtype,
        device,
        requires_grad,
        lambda indices, intervals: tenon.exp(tenon.square((indices - intervals / 2) / std) * -0.5),
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)` with the modified Bessel function I0."""
    if beta < 0:
        raise ValueError(f"kaiser(): expected beta of at least 0, got {beta}")

    def values(indices: Tensor, intervals: int) -> Tensor:
        at = indices * (2 / intervals) - 1
        # Rounding may leave a negative number at the ends, of which there is no root.
        inside = tenon.sqrt(tenon.clip(1 - at * at, 0, None)) * beta
        return tenon.i0(inside) / tenon.i0(tenon.zeros_like(indices[:1]) + beta)

    return _window("kaiser", M, sym, dtype, device, requires_grad, values)


_signatures.adapt_all("signal.windows", __all__, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
