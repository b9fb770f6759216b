# SPDX-License-Identifier: Apache-2.0
"""Data as tensors of the dtypes that NumPy would give it."""

from __future__ import annotations

from typing import Any

from tenon import _core
from tenon._core import Tensor


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """`data` as a tensor; Python's floats are float64, and its complex numbers complex128."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype=dtype)
    if dtype is not None or hasattr(data, "dtype"):
        return _core.asarray(data, dtype=dtype)
    if isinstance(data, (list, tuple)) and any(isinstance(each, Tensor) for each in data):
        return _core.operator("stack")([as_tensor(each) for each in data], 0)
    guess = _core.tensor(data)
    if guess.dtype == _core.float32:
        return _core.tensor(data, dtype=_core.float64)
    if guess.dtype == _core.complex64:
        return _core.tensor(data, dtype=_core.complex128)
    return guess


def as_float(data: Any) -> Tensor:
    """The same; whole numbers and booleans become float64."""
    x = as_tensor(data)
    return x.to(_core.float64) if x.dtype.is_integer or x.dtype.name == "bool" else x
