# SPDX-License-Identifier: Apache-2.0
"""Data as tensors of the dtypes that NumPy would give it, and the dtype of several together."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor

_COMPLEX = {16: "complex64", 32: "complex64", 64: "complex128"}
_WEAK = (bool, int, float, complex)  # Python's numbers, but not NumPy's, which have dtypes


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """`data` as a tensor; Python's floats are float64, and its complex numbers complex128."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype=dtype)
    if dtype is not None or hasattr(data, "dtype"):
        return _core.asarray(data, dtype=dtype)
    if isinstance(data, (list, tuple)) and any(
        isinstance(each, Tensor) or hasattr(each, "dtype") for each in data
    ):
        return _core.operator("stack")(unified(data), 0)
    if isinstance(data, (list, tuple)) and any(isinstance(each, (list, tuple)) for each in data):
        return _core.operator("stack")(unified(map(as_tensor, data)), 0)
    guess = _core.tensor(data)
    if guess.dtype == _core.float32:
        return _core.tensor(data, dtype=_core.float64)
    if guess.dtype == _core.complex64:
        return _core.tensor(data, dtype=_core.complex128)
    return guess


def as_float(data: Any) -> Tensor:
    """The same; whole numbers and booleans become float64."""
    x = as_tensor(data)
    return x.to(_core.float64) if kind_of(x.dtype) in "bi" else x


def kind_of(dtype: Any) -> str:
    """ "b" of bool, "i" of whole numbers, "f" of floats and "c" of complex ones."""
    if dtype.is_complex:
        return "c"
    if dtype.is_floating_point:
        return "f"
    return "i" if dtype.is_integer else "b"


def _is_known(dtype: Any) -> bool:
    """Whether NumPy has the dtype: it has neither bfloat16 nor any float of eight bits."""
    return kind_of(dtype) != "f" or dtype.name in ("float16", "float32", "float64")


def _bits(dtype: Any) -> int:
    return 8 * dtype.itemsize // (2 if dtype.is_complex else 1)


def float_of(dtype: Any) -> Any:
    """The smallest float that NumPy takes for a dtype, of whole numbers one that is wider."""
    if kind_of(dtype) in "fc":
        return dtype
    return {1: _core.float16, 2: _core.float32}.get(dtype.itemsize, _core.float64)


@functools.cache
def promote(a: Any, b: Any) -> Any:
    """The dtype of two together, as numpy.promote_types() has it."""
    if a == b:
        return a
    if not (_is_known(a) and _is_known(b)):
        return _core._promote(a, b)
    a, b = sorted((a, b), key=lambda each: "bifc".index(kind_of(each)))
    kinds = kind_of(a) + kind_of(b)
    if kinds[0] == "b":
        return b
    if kinds == "ii":
        signed = [each for each in (a, b) if each.name.startswith("int")]
        if len(signed) != 1:
            return max(a, b, key=_bits)
        unsigned = b if signed[0] == a else a
        bits = max(_bits(signed[0]), 2 * _bits(unsigned))
        return _core.float64 if bits > 64 else _core.dtype(f"int{bits}")
    bits = max(_bits(float_of(a)), _bits(b))
    return _core.dtype(_COMPLEX[bits] if kinds[1] == "c" else f"float{bits}")


def common_dtype(values: Iterable[Any]) -> Any:
    """The dtype of tensors, arrays and numbers together. Beside an array, one of Python's numbers
    counts by its kind alone."""
    weak, dtypes = [], []
    for each in values:
        if type(each) in _WEAK:
            weak.append(each)
        else:
            dtypes.append(each.dtype if isinstance(each, Tensor) else as_tensor(each).dtype)
    if not dtypes:
        dtypes, weak = [as_tensor(each).dtype for each in weak], []
    result = functools.reduce(promote, dtypes)
    for each in weak:
        kind = kind_of(result)
        if type(each) is int and kind == "b":
            result = _core.int64
        elif type(each) is float and kind in "bi":
            result = _core.float64
        elif type(each) is complex and kind != "c":
            result = promote(_core.float64 if kind in "bi" else result, _core.complex64)
    return result


def unified(values: Iterable[Any], dtype: Any = None) -> list[Tensor]:
    """Tensors, arrays and numbers as tensors of one dtype: that of all together."""
    given = [each if type(each) in _WEAK else as_tensor(each) for each in values]
    wanted = common_dtype(given) if dtype is None else dtype
    for each in given:
        if type(each) is int and wanted.is_integer:
            _check_range(each, wanted)
    return [as_tensor(each, wanted) for each in given]


def _check_range(value: int, dtype: Any) -> None:
    bits, is_signed = 8 * dtype.itemsize, dtype.name.startswith("int")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if is_signed else (0, 2**bits)
    if not low <= value < high:
        raise OverflowError(f"expected a number that {dtype} holds, got {value}")


def dtype_of(dtype: Any) -> Any:
    """A dtype by NumPy's meaning of Python's types, its own dtypes, and names."""
    known = {float: _core.float64, complex: _core.complex128, int: _core.int64, bool: tenon.bool}
    if isinstance(dtype, type) and dtype in known:
        return known[dtype]
    return _core.dtype(dtype)
