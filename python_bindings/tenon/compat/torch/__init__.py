# SPDX-License-Identifier: Apache-2.0
"""Functions by PyTorch's names, with its parameters, defaults and results.

    from tenon.compat import torch
    torch.cat([torch.zeros(2, 3), torch.ones(2, 3)], dim=0).max(dim=1)

Functions alone: tensors are tenon.Tensor, whose methods keep Tenon's defaults
(docs/compat_namespaces.md). alias() makes `import torch` mean Tenon, methods included, in the
whole process (docs/torch_alias.md).
"""

from importlib import import_module
from typing import Any

from tenon.compat._adapt import Namespace
from tenon.compat.torch import _options, _signatures
from tenon.compat.torch import fft as fft
from tenon.compat.torch import linalg as linalg
from tenon.compat.torch import masked as masked
from tenon.compat.torch import nn as nn
from tenon.compat.torch import signal as signal
from tenon.compat.torch import special as special
from tenon.compat.torch._options import contiguous_format as contiguous_format
from tenon.compat.torch._options import layout as layout
from tenon.compat.torch._options import memory_format as memory_format
from tenon.compat.torch._options import preserve_format as preserve_format
from tenon.compat.torch._options import strided as strided

# Operators whose positional arguments, defaults and results agree.
_SAME = """abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil celu cholesky_inverse
cholesky_solve clone copysign cos cosh cosine_similarity deg2rad det digamma dist dropout
empty_like erf erfc exp exp2 expm1 flatten floor floor_divide fmax fmin fmod frac greater
greater_equal heaviside hypot imag inner isfinite isinf isnan isneginf isposinf kron less
less_equal lgamma log log10 log1p log2 logaddexp2 logdet logical_and logical_not logical_or
logical_xor masked_fill masked_select matmul matrix_exp matrix_power maximum minimum movedim
multinomial multiply negative nextafter not_equal ones_like outer pairwise_distance permute
pixel_shuffle pixel_unshuffle polygamma pow prelu rad2deg randperm reciprocal relu remainder
renorm reshape round rsqrt select selu sin sinc sinh slogdet sqrt square stack subtract tan tanh
threshold trace tril triu trunc unbind unsqueeze vander xlogy zeros_like""".split()

# Attributes of Tenon that are the thing itself.
_OURS = {
    name: name
    for name in """Generator Tensor bfloat16 bool broadcast_shapes complex64 complex128 device dtype e
    enable_grad finfo float8_e4m3 float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float16 float32
    float64 from_numpy func get_default_dtype get_num_threads hstack iinfo inf inference_mode
    int8 int16 int32 int64 is_complex is_floating_point is_grad_enabled is_tensor isin
    manual_seed moveaxis nan newaxis no_grad numel optim pi promote_types random ravel
    set_default_dtype set_grad_enabled set_num_threads swapaxes uint8 uint16 uint32 uint64
    vstack""".split()
} | {
    "autograd": "autograd",
    "fft": "compat.torch.fft",
    "linalg": "compat.torch.linalg",
    "masked": "compat.torch.masked",
    "nn": "compat.torch.nn",
    "signal": "compat.torch.signal",
    "special": "compat.torch.special",
    "concat": "concat",
    "concatenate": "concat",
    "double": "float64",
    "float": "float32",
    "float8_e4m3fn": "float8_e4m3",
    "float8_e5m2": "float8_e5m2",
    "float8_e8m0fnu": "float8_e8m0",
    "float4_e2m1fn_x2": "float4_e2m1_x2",
    "half": "float16",
    "int": "int32",
    "initial_seed": "random.initial_seed",
    "inverse": "linalg.inv",
    "pinverse": "linalg.pinv",
    "get_rng_state": "random.get_state",
    "set_rng_state": "random.set_state",
    "long": "int64",
    "matrix_transpose": "matrix_transpose",
    "seed": "random.seed",
    "short": "int16",
}

_FUNCTIONS = " ".join(
    f"{__name__}.{each}"
    for each in """_creation _functions _layers _arrays _operands _copies _conversions _indices
    _moments _state""".split()
)
_namespace = Namespace(
    "torch", _FUNCTIONS, _SAME, _OURS, methods=["type", "unfold"], adapt=_signatures.adapted
)

# Functions that PyTorch also has in place, with a name that ends in "_".
_IN_PLACE = """abs acos acosh addmv arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil celu clamp
clip conj_physical cos cosh deg2rad dropout erf erfc exp exp2 expm1 fill fix floor frac gcd i0 index_put lcm ldexp log log10
log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rsqrt selu sigmoid sin sinc sinh sqrt square tan
tanh threshold trunc xlogy""".split()


def __getattr__(name: str) -> Any:
    if name == "alias":
        return import_module(
            "tenon.compat.torch._alias"
        ).alias  # gives all tensors methods of PyTorch
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.compat.torch' has no attribute '{name}'")
    if name[:-1] in _IN_PLACE and name.endswith("_"):
        value = _options.in_place(name, _namespace.find(name[:-1]))
    else:
        value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), *(f"{each}_" for each in _IN_PLACE)})
