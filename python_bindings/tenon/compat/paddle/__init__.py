# SPDX-License-Identifier: Apache-2.0
"""Device plugins and custom operators written for PaddlePaddle, and functions by Paddle's names.

    from tenon.compat import paddle
    paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]), transpose_y=True)

The folder of this package is what their build files know as the installed framework: it has
`include/` and `base/libpaddle.so`.
"""

import os as _os
from typing import Any as _Any

from tenon.compat._adapt import Namespace as _Namespace
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


# Operators whose positional arguments, defaults and results agree.
_SAME = """abs acos acosh add all any asin asinh atan atan2 atanh bernoulli bitwise_and bitwise_or
bitwise_xor bucketize ceil clone conj cos cosh count_nonzero cross deg2rad diag diagonal diff
digamma dist divide empty_like equal erf exp expand expm1 flip floor floor_divide fmax fmin frac
greater_equal heaviside hypot imag inner isclose isfinite isinf isnan kron less_equal lerp lgamma
log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit logsumexp
masked_fill masked_select max maximum mean min minimum multinomial multiply nan_to_num nanmean
nansum nextafter not_equal ones_like outer pow rad2deg randperm real reciprocal remainder reshape
roll round rsqrt sign sin sinc sinh sqrt square squeeze subtract tan tanh trace tril triu trunc
unbind unsqueeze vander zeros_like""".split()

# Attributes of Tenon that are the thing itself.
_OURS = {
    name: name
    for name in """Tensor bfloat16 bool broadcast_shapes complex64 complex128 enable_grad fft finfo
    float16 float32 float64 get_default_dtype grad iinfo inf int8 int16 int32 int64 is_complex
    is_floating_point is_integer is_tensor linalg load moveaxis nan newaxis nn no_grad pi save
    set_default_dtype set_grad_enabled set_printoptions signal uint8 unstack""".split()
} | {
    "get_rng_state": "random.get_state",
    "set_rng_state": "random.set_state",
    "is_grad_enabled": "is_grad_enabled",
}

_FUNCTIONS = f"{__name__}._functions {__name__}._arrays"
_namespace = _Namespace("paddle", _FUNCTIONS, _SAME, _OURS)


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.compat.paddle' has no attribute '{name}'")
    value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), *__all__})
