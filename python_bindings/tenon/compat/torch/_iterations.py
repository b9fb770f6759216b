# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions that iterate: loops over tensors, and some eigenvalues of large matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import jit
from tenon._core import Tensor
from tenon._tensor.lobpcg import random_start

__all__ = ["lobpcg", "while_loop"]


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """`carried_inputs = body_fn(*carried_inputs)` as long as `cond_fn(*carried_inputs)` holds."""
    if not isinstance(carried_inputs, (tuple, list)):
        raise TypeError(
            f"while_loop(): expected carried_inputs as a tuple, got {type(carried_inputs).__name__}"
        )
    return jit.while_loop(cond_fn, body_fn, tuple(carried_inputs))


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """tenon.linalg.lobpcg(), whose basis is orthonormal: `method` "ortho". `n` is the width of a random start if no `X` is given."""
    if method not in (None, "ortho"):
        raise NotImplementedError(f"lobpcg(): expected method None or 'ortho', got {method!r}")
    if tracker is not None or any(each for each in (ortho_iparams, ortho_fparams, ortho_bparams)):
        raise NotImplementedError(
            "lobpcg(): expected no tracker and no ortho_iparams, ortho_fparams or ortho_bparams"
        )
    if k is None and X is None:
        k = 1
    if X is None and n is not None:
        X = random_start(A, n)
    return tenon.linalg.lobpcg(
        A,
        k,
        B,
        X,
        preconditioner=iK,
        iterations=niter,
        tolerance=tol,
        largest=largest is None or largest,
    )
