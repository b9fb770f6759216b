# SPDX-License-Identifier: Apache-2.0
"""Device plugins and custom operators written for PaddlePaddle, and functions by Paddle's names.

    from tenon.compat import paddle
    paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]), transpose_y=True)

The folder of this package is what their build files know as the installed framework: it has
`include/` and `base/libpaddle.so`.
"""

import importlib as _importlib
import os as _os
from typing import Any as _Any

from tenon.compat._signature import SignedNamespace as _Namespace
from tenon.compat.paddle._device import (
    _load_for_unknown_device,  # noqa: F401
    device_plugins,
    kernel_table,
    load_all,
    load_device_plugin,
)

__all__ = [
    "device_plugins",
    "get_include",
    "get_lib",
    "kernel_table",
    "load_all",
    "load_device_plugin",
]

_FOLDER = _os.path.dirname(_os.path.abspath(__file__))


def get_include():
    """The folder of the headers `paddle/...`."""
    return _os.path.join(_FOLDER, "include")


def get_lib():
    """The folder of libpaddle.so."""
    return _os.path.join(_FOLDER, "base")


# Operators whose positional arguments and results agree; _signatures.py has Paddle's names and defaults.
_SAME = """abs acos acosh all any asin asinh atan atanh bitwise_and bitwise_or bitwise_xor ceil
clone conj cos cosh count_nonzero deg2rad diagonal digamma dist equal erf exp expm1 floor
floor_divide fmax fmin frac greater_equal heaviside hypot imag inner isclose isfinite isinf isnan
kron less_equal lerp lgamma log log10 log1p log2 logaddexp logical_and logical_not logical_or
logical_xor logsumexp masked_select max maximum min minimum multinomial multiply nan_to_num
nanmean nextafter not_equal outer pow rad2deg real reciprocal remainder roll rsqrt sign sin sinc
sinh sqrt square tan tanh tril triu trunc""".split()

# Attributes of Tenon that are the thing itself.
_OURS = {
    name: name
    for name in """Tensor bfloat16 bool broadcast_shapes complex64 complex128 enable_grad finfo float16
    float32 float64 get_default_dtype iinfo inf int8 int16 int32 int64 nan newaxis no_grad pi set_default_dtype set_grad_enabled uint8""".split()
} | {
    "get_rng_state": "random.get_state",
    "set_rng_state": "random.set_state",
    "is_grad_enabled": "is_grad_enabled",
}

_SUBMODULES = ("distributed", "fft", "linalg", "nn", "signal")
_namespace = _Namespace(
    "paddle",
    " ".join(f"{__name__}.{each}" for each in ("_functions", "_arrays", "_composed", "_selection")),
    _SAME,
    _OURS,
    signatures=f"{__name__}._signatures",
    ignored=["name", "only_inputs"],  # a label, and a parameter that Paddle says is always true
    aliases={"input": "x", "other": "y", "dim": "axis"},
)


def __getattr__(name: str) -> _Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'tenon.compat.paddle' has no attribute '{name}'")
    if name in _SUBMODULES:
        value: _Any = _importlib.import_module(f"{__name__}.{name}")
    else:
        value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), *_SUBMODULES, *__all__})
