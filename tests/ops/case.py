# SPDX-License-Identifier: Apache-2.0
"""One sample call of an operator, and what NumPy says it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """Arrays among `args` and `kwargs` become tensors, lists of arrays lists of tensors."""

    op: str
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    # NumPy's answer for the same arguments: an array, or a tuple for several results.
    reference: Callable | None = None
    # Positions of the arguments to differentiate, twice; None: every floating array. Fewer need a
    # reason, which is not that the gradient is wrong.
    grad: tuple[int, ...] | None = None
    why: str = ""
    smooth: int | None = None  # how many of its results, from the first, have gradients; None: all
    dtype: str | None = None  # of the result, where the usual rules do not say it
    only: str | None = None  # the one floating dtype that the operator serves, if it is one
    # In float64; other dtypes widen it. NumPy adds in another order.
    rtol: float = 1e-10
    atol: float = 1e-12
    label: str = ""

    def __post_init__(self):
        if (self.grad is None) == bool(self.why):
            raise ValueError(f"{self}: expected a reason in `why` if and only if `grad` is given")

    def __str__(self):
        return self.op + (f"-{self.label}" if self.label else "")


def differentiable_results(case, results):
    """Those of a case's results, or of its call's, that have gradients."""
    return results_of(results)[: case.smooth]


def is_floating(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def differentiable(case):
    """Positions of arguments to differentiate; a list of tensors counts as one position."""
    if case.grad is not None:
        return case.grad
    return tuple(
        i
        for i, value in enumerate(case.args)
        if is_floating(value) or (isinstance(value, list) and value and is_floating(value[0]))
    )


def map_arrays(function, value):
    """`value` with `function` applied to every array in it."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [function(item) for item in value]
    return value


def as_dtype(value, dtype):
    """Floating arrays in another dtype; the rest as it is."""
    return map_arrays(
        lambda array: array.astype(dtype) if array.dtype.kind == "f" else array, value
    )


def results_of(value):
    """One result or several, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
