# SPDX-License-Identifier: Apache-2.0
"""Functions by NumPy's names, with its parameters, defaults and results.

    from tenon.compat import numpy as np
    np.mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0, keepdims=True)

Numbers are float64 unless a dtype is given, functions take lists and arrays for tensors, and
results are tensors: float(...) or .item() gives a number (docs/compat_namespaces.md).
"""

from typing import Any

from tenon.compat._adapt import Namespace
from tenon.compat.numpy._convert import as_tensor

_SAME = """abs bitwise_and bitwise_or bitwise_xor ceil clip conj copysign count_nonzero deg2rad
diagonal equal floor floor_divide fmax fmin fmod greater greater_equal heaviside hypot imag inner
isclose isfinite isinf isnan isneginf isposinf kron less less_equal logaddexp logaddexp2
logical_and logical_not logical_or logical_xor matmul maximum minimum multiply nan_to_num negative
nextafter not_equal outer positive rad2deg real reciprocal remainder rot90 sign signbit sinc square
squeeze subtract take_along_axis tril triu trunc add vecdot""".split()

_OURS = {
    name: name
    for name in """complex64 complex128 e fft float16 float32 float64 inf int8 int16 int32 int64 linalg nan newaxis pi
    uint8 uint16 uint32 uint64 finfo iinfo result_type broadcast_shapes""".split()
} | {
    "array_api": "array_api",
    "bool_": "bool",
    "complex_": "complex128",
    "float_": "float64",
    "int_": "int64",
    "ndarray": "Tensor",
    "promote_types": "promote_types",
}

_FUNCTIONS = " ".join(
    f"{__name__}.{each}"
    for each in ("_functions", "_shapes", "_indexing", "_statistics", "_polynomial")
)
_namespace = Namespace("numpy", _FUNCTIONS, _SAME, _OURS, as_tensor, ["astype"])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.compat.numpy' has no attribute '{name}'")
    if name == "random":
        import importlib

        value: Any = importlib.import_module("tenon.compat.numpy._random")
    else:
        value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), "random"})
