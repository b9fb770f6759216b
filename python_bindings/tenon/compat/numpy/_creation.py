# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that make arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

from tenon import _core, array_api
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.numpy._convert import (
    as_float,
    as_tensor,
    common_dtype,
    dtype_of,
    kind_of,
    promote,
    unified,
)
from tenon.compat.numpy._layout import (
    broadcast_arrays,
    copies,
    expand_dims,
    lengths_of,
    moveaxis,
    wanted_dtype,
)

__all__ = """astype arange array asanyarray asarray ascontiguousarray copy empty empty_like eye full full_like
identity linspace logspace meshgrid ones ones_like zeros zeros_like""".split()

Axes = builtins.int | Sequence[builtins.int] | None


def array(object: Any, dtype: Any = None, *, copy: Any = True, ndmin: builtins.int = 0) -> Tensor:
    """A tensor of the values."""
    made = as_tensor(object, wanted_dtype(dtype))
    if copies("array", copy):
        made = made.clone() if made is object or hasattr(object, "dtype") else made
    elif copy is False and made is not object:
        raise ValueError("array(): expected a tensor of this dtype where copy is False")
    return (
        made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if made.ndim < ndmin else made
    )


def asarray(a: Any, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """The values as a tensor, sharing memory where that is possible."""
    made = as_tensor(a, wanted_dtype(dtype))
    made = made if device is None else made.to(device=device)
    if copy is False and made is not a and not hasattr(a, "dtype"):
        raise ValueError("asarray(): expected an array where copy is False, got values to copy")
    return made.clone() if copies("asarray", copy) and (made is a or hasattr(a, "dtype")) else made


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """The values in row-major order, with one axis at least."""
    made = _operator("contiguous")(as_tensor(a, wanted_dtype(dtype)))
    return made.reshape(1) if made.ndim == 0 else made


def _filled(name: str) -> Callable[..., Tensor]:
    def function(shape: Any, dtype: Any = None, device: Any = None) -> Tensor:
        wanted = _core.float64 if dtype is None else dtype_of(dtype)
        return _operator(name)(lengths_of(shape), dtype=wanted, device=device)

    function.__doc__ = f"tenon.{name}, in float64 unless a dtype is given."
    return function


zeros, ones, empty = _filled("zeros"), _filled("ones"), _filled("empty")


def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of one value, or of values that are broadcast."""
    value = as_tensor(fill_value, wanted_dtype(dtype))
    value = value if device is None else value.to(device=device)
    return _operator("expand")(value, lengths_of(shape)).clone()


def _of_shape(x: Any, shape: Any) -> list[builtins.int]:
    return list(as_tensor(x).shape) if shape is None else lengths_of(shape)


def _like(name: str, parameter: str) -> Callable[..., Tensor]:
    def function(a: Any, dtype: Any = None, shape: Any = None, device: Any = None) -> Tensor:
        x = as_tensor(a)
        wanted = x.dtype if dtype is None else dtype_of(dtype)
        return _operator(name)(_of_shape(x, shape), dtype=wanted, device=device or x.device)

    def of_prototype(
        prototype: Any, dtype: Any = None, shape: Any = None, device: Any = None
    ) -> Tensor:
        return function(prototype, dtype, shape, device)

    function.__doc__ = of_prototype.__doc__ = f"tenon.{name}, of the shape and dtype of another."
    return function if parameter == "a" else of_prototype


zeros_like, ones_like = _like("zeros", "a"), _like("ones", "a")
empty_like = _like("empty", "prototype")


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, device: Any = None
) -> Tensor:
    """One value, in the shape and dtype of another."""
    x = as_tensor(a)
    wanted = x.dtype if dtype is None else dtype_of(dtype)
    return full(_of_shape(x, shape), as_tensor(fill_value).to(dtype=wanted), wanted, device)


def arange(
    start_or_stop: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from a start to before `stop`; arange(stop) starts from 0."""
    start, stop = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    step = 1 if step is None else step
    limits = [each.item() if hasattr(each, "item") else each for each in (start, stop, step)]
    wanted = wanted_dtype(dtype)
    if wanted is None:
        wanted = common_dtype([as_tensor(each) for each in (start, stop, step)])
    if wanted.is_integer and not builtins.all(float(each).is_integer() for each in limits):
        raise TypeError(
            f"arange(): expected whole numbers for a result of {wanted}, got {limits}; make the result "
            f"of floats and convert it"
        )
    # Elements are start + i * step in double precision, and then in the dtype.
    count = builtins.max(0, math.ceil((limits[1] - limits[0]) / limits[2]))
    if wanted.is_integer and builtins.all(type(each) is builtins.int for each in limits):
        return _operator("arange")(*limits, dtype=wanted, device=device)
    first = as_tensor(float(limits[0]), _core.float64)
    numbers = _operator("arange")(0, count, 1, dtype=_core.float64, device=device)
    return (first + numbers * float(limits[2])).to(dtype=wanted)


def linspace(
    start: Any,
    stop: Any,
    num: builtins.int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: builtins.int = 0,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers, along a new axis where the ends are arrays; with `retstep`, their
    distance, too."""
    if num < 0:
        raise ValueError(f"linspace(): expected at least 0 numbers, got {num}")
    low, high = (as_float(each) for each in (start, stop))
    low, high = unified([low * 1.0, high * 1.0])
    found = promote(low.dtype, _core.float64)
    low, high = broadcast_arrays(low.to(dtype=found), high.to(dtype=found))
    parts = num - 1 if endpoint else num
    numbers = _operator("arange")(0, num, 1, dtype=_core.float64, device=device)
    numbers = numbers.reshape([-1] + [1] * low.ndim).to(dtype=found)
    distance = (high - low) / parts if parts > 0 else low * math.nan
    made = numbers * distance + low if parts > 0 else numbers * (high - low) + low
    if endpoint and num > 1:
        made[-1] = high
    wanted = found if dtype is None else dtype_of(dtype)
    if wanted.is_integer and kind_of(found) == "f":
        made = _operator("floor")(made)
    made = moveaxis(made.to(dtype=wanted), 0, axis)
    return (made, distance) if retstep else made


def logspace(
    start: Any,
    stop: Any,
    num: builtins.int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: builtins.int = 0,
) -> Tensor:
    """Numbers whose logarithms are evenly spaced."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base = as_float(base)
    if base.ndim:
        base = expand_dims(base, axis)
    made = _operator("pow")(*unified([base, exponents]))
    return made if dtype is None else made.to(dtype=dtype_of(dtype))


def eye(
    N: builtins.int,
    M: builtins.int | None = None,
    k: builtins.int = 0,
    dtype: Any = float,
    device: Any = None,
) -> Tensor:
    """A matrix with ones on a diagonal."""
    wanted = _core.float64 if dtype is None else dtype_of(dtype)
    return array_api.eye(N, M, k=k, dtype=wanted, device=device)


def identity(n: builtins.int, dtype: Any = None) -> Tensor:
    """A square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors; `sparse` leaves the other axes at length 1."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): expected indexing 'xy' or 'ij', got {indexing!r}")
    vectors = [as_tensor(each).reshape(-1) for each in xi]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shaped = []
    for axis, vector in zip(order, vectors, strict=True):
        lengths = [1] * len(vectors)
        lengths[axis] = -1
        shaped.append(vector.reshape(lengths))
    grids = tuple(shaped) if sparse else broadcast_arrays(*shaped)
    return tuple(each.clone() for each in grids) if copy else grids


def astype(x: Any, dtype: Any, copy: bool = True, device: Any = None) -> Tensor:
    """The values in another dtype; without `copy` the array itself where it has it."""
    if not isinstance(x, Tensor):
        raise TypeError(f"astype(): expected an array, got {type(x).__name__}; use asarray()")
    made = as_tensor(x, dtype_of(dtype))
    made = made if device is None else made.to(device=device)
    return made.clone() if copies("astype", copy) and made is x else made


def copy(a: Any) -> Tensor:
    """The values in memory of their own."""
    x = as_tensor(a)
    return x.clone()
