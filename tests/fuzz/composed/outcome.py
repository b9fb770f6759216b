# SPDX-License-Identifier: Apache-2.0
"""What a step of a program comes to: a result, or a refusal that says what to do; anything else is a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tenon

REFUSED = (NotImplementedError, TypeError, ValueError, IndexError, BufferError)


class Refused(Exception):
    """A refusal with a text."""


class Fault(Exception):
    """A third outcome."""


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except REFUSED as error:
        if len(str(error)) < 10:
            raise Fault(f"{type(error).__name__} without a text: {error}") from error
        raise Refused(str(error)) from error
    except Exception as error:
        raise Fault(f"{type(error).__name__}: {error}") from error


def dense(x: tenon.Tensor) -> tenon.Tensor:
    return x.to_dense() if x.layout != "strided" else x


TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-4, "complex64": 2e-4}


def differs(got: Any, want: Any, relative: float | None = None) -> str | None:
    """Where two results differ, in words. Not finite numbers of the dense program are not compared: what is not stored is a
    zero that they do not touch."""
    if not isinstance(want, tenon.Tensor):
        return None if got == want else f"got {got!r}, expected {want!r}"
    if not isinstance(got, tenon.Tensor):
        return f"got {type(got).__name__}, expected a tensor"
    if tuple(got.shape) != tuple(want.shape) or got.dtype != want.dtype:
        return f"got {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    a, b = (numbers(dense(x)) for x in (got, want))
    if relative is None:
        relative = TOLERANCE.get(want.dtype.name, 1e-8)
    with np.errstate(all="ignore"):
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind in "fc" else 1.0
        near = (np.abs(a - b) <= relative * (np.abs(b) + scale)) if b.dtype.kind in "fc" else a == b
        fine = near | ~np.isfinite(b) if b.dtype.kind in "fc" else near
    if np.all(fine):
        return None
    at = tuple(int(i) for i in np.argwhere(~fine)[0])
    return f"got {a[at]!r}, expected {b[at]!r} at {at} of {a.shape}"


def numbers(x: tenon.Tensor) -> np.ndarray:
    x = x.detach()
    if x.dtype.is_floating_point:
        x = x.to(tenon.float64)
    return x.to(tenon.complex128).numpy() if x.dtype.is_complex else x.numpy()


def bits(x: Any) -> Any:
    """What has to be the same when a program runs compiled."""
    if isinstance(x, tenon.Tensor):
        x = dense(x.detach())
        return (
            x.dtype.name,
            tuple(x.shape),
            x.to_bytes() if hasattr(x, "to_bytes") else x.numpy().tobytes(),
        )
    return x
