# SPDX-License-Identifier: Apache-2.0
"""numpy.random: functions of the one stream, and generators of their own. The numbers are Tenon's,
not NumPy's, for the same seed."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.numpy._convert import as_tensor

_DOUBLE = {"dtype": _core.float64}


def _shape(size: Any) -> Any:
    return [] if size is None else size


def seed(seed: int | None = None) -> None:
    """Start the stream from a number, or from one of the operating system."""
    tenon.random.seed() if seed is None else tenon.manual_seed(seed)


def rand(*shape: int) -> Tensor:
    """Uniform numbers from 0 to 1."""
    return _operator("uniform")(list(shape), **_DOUBLE)


def randn(*shape: int) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    return _operator("normal")(list(shape), **_DOUBLE)


def random(size: Any = None) -> Tensor:
    """Uniform numbers from 0 to 1."""
    return _operator("uniform")(_shape(size), **_DOUBLE)


random_sample = random


def uniform(low: float = 0.0, high: float = 1.0, size: Any = None) -> Tensor:
    """Uniform numbers in [low, high)."""
    return _operator("uniform")(_shape(size), low, high, **_DOUBLE)


def normal(loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Tensor:
    """Normal numbers."""
    return _operator("normal")(_shape(size), loc, scale, **_DOUBLE)


def standard_normal(size: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    return _operator("normal")(_shape(size), **_DOUBLE)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> Tensor:
    """Whole numbers in [low, high); randint(high) starts from 0."""
    low, high = (0, low) if high is None else (low, high)
    return _operator("randint")(low, high, _shape(size), dtype=dtype)


def permutation(x: Any) -> Tensor:
    """The numbers below x, or the rows of x, in random order."""
    if isinstance(x, int):
        return _operator("randperm")(x)
    rows = as_tensor(x)
    return rows[_operator("randperm")(rows.shape[0])]


def shuffle(x: Tensor) -> None:
    """Put the rows of a tensor into random order, in place."""
    x.copy_(permutation(x))


def choice(a: Any, size: Any = None, replace: bool = True) -> Tensor:
    """Elements of a vector, or numbers below `a`, drawn with or without putting back."""
    values = _operator("arange")(a) if isinstance(a, int) else as_tensor(a)
    shape = _shape(size)
    shape = [shape] if isinstance(shape, int) else list(shape)
    if replace:
        return values[_operator("randint")(0, values.shape[0], shape)]
    count = 1
    for extent in shape:
        count *= extent
    if count > values.shape[0]:
        raise ValueError(
            f"choice(): expected at most {values.shape[0]} elements without replacement, got {count}"
        )
    return values[_operator("randperm")(values.shape[0])[:count]].reshape(shape)


def exponential(scale: Any = 1.0, size: Any = None) -> Tensor:
    """Exponential numbers of mean `scale`."""
    return tenon.random.exponential(1 / as_tensor(scale, _core.float64), size)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None) -> Tensor:
    """Gamma numbers of mean shape * scale."""
    rate = 1 / as_tensor(scale, _core.float64)
    return tenon.random.gamma(as_tensor(shape, _core.float64), rate, size)


def beta(a: Any, b: Any, size: Any = None) -> Tensor:
    """Beta numbers."""
    return tenon.random.beta(as_tensor(a, _core.float64), as_tensor(b, _core.float64), size)


def poisson(lam: Any = 1.0, size: Any = None) -> Tensor:
    """Counts of mean `lam`, as int64."""
    return tenon.random.poisson(as_tensor(lam, _core.float64), size).to(_core.int64)


def binomial(n: Any, p: Any, size: Any = None) -> Tensor:
    """Successes of `n` trials, as int64."""
    drawn = tenon.random.binomial(as_tensor(n, _core.float64), as_tensor(p, _core.float64), size)
    return drawn.to(_core.int64)
