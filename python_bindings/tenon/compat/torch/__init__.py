# SPDX-License-Identifier: Apache-2.0
"""Functions by PyTorch's names, with its parameters, defaults and results.

    from tenon.compat import torch
    torch.cat([torch.zeros(2, 3), torch.ones(2, 3)], dim=0).max(dim=1)

Functions alone: tensors are tenon.Tensor, whose methods keep Tenon's defaults
(docs/compat_namespaces.md). alias() makes `import torch` mean Tenon, methods included, in the
whole process (docs/torch_alias.md).
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import Any

from tenon._tensor import ports as _ports
from tenon.compat._adapt import Namespace
from tenon.compat.torch import _options, _signatures
from tenon.compat.torch import fft as fft
from tenon.compat.torch import linalg as linalg
from tenon.compat.torch import masked as masked
from tenon.compat.torch import nn as nn
from tenon.compat.torch import signal as signal
from tenon.compat.torch import special as special
from tenon.compat.torch._options import contiguous_format as contiguous_format
from tenon.compat.torch._options import jagged as jagged
from tenon.compat.torch._options import layout as layout
from tenon.compat.torch._options import memory_format as memory_format
from tenon.compat.torch._options import preserve_format as preserve_format
from tenon.compat.torch._options import sparse_bsr as sparse_bsr
from tenon.compat.torch._options import sparse_coo as sparse_coo
from tenon.compat.torch._options import sparse_csc as sparse_csc
from tenon.compat.torch._options import sparse_csr as sparse_csr
from tenon.compat.torch._options import strided as strided

_FUNCTIONS = " ".join(
    f"{__name__}.{each}"
    for each in """_creation _functions _layers _arrays _operands _copies _conversions _indices
    _iterations _moments _natives _numbered _recurrent _sparse _state""".split()
)
_LATE = ("distributed", "futures", "nested", "sparse")
_SUBMODULES = ("fft", "linalg", "masked", "nn", "signal", "special")
_namespace = Namespace("torch", _FUNCTIONS, adapt=_signatures.adapted)

# Functions that PyTorch also has in place, with a name that ends in "_".
_IN_PLACE = """abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil celu clamp
clip conj_physical cos cosh deg2rad dropout erf erfc exp exp2 expm1 feature_alpha_dropout feature_dropout fill fix floor frac gcd i0 index_put lcm ldexp log log10
log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rrelu rsqrt selu sigmoid sin sinc sinh sqrt square tan
tanh threshold trunc xlogy""".split()

# Names that are not here, and where their like is.
_ELSEWHERE = {
    **dict.fromkeys(
        "Size Storage autocast channels_last set_float32_matmul_precision".split(),
        "tenon.compat.torch.alias() gives `import torch` this name",
    ),
    "embedding_bag": "torch.nn.functional.embedding_bag, whose parameters are in another order, is there",
    "segment_reduce": "tenon.geometric has segment_sum, segment_mean, segment_max and segment_min",
}


def _found(name: str) -> Any:
    if name in _ELSEWHERE:
        raise AttributeError(f"tenon.compat.torch does not cover torch.{name}; {_ELSEWHERE[name]}")
    return _namespace.find(name)


def __getattr__(name: str) -> Any:
    if name == "alias":
        # Gives all tensors the methods of PyTorch.
        return _import_module("tenon.compat.torch._alias").alias
    if name.startswith("__"):
        raise AttributeError(f"module 'tenon.compat.torch' has no attribute '{name}'")
    if name in _LATE:
        # Submodules that are loaded when they are named: they bring groups of ranks and layers along.
        value: Any = _import_module(f"{__name__}.{name}")
    elif name[:-1] in _IN_PLACE and name.endswith("_"):
        value = _options.in_place(name, _namespace.find(name[:-1]))
    else:
        value = _found(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    names = {*_LATE, *_namespace.names(), *_SUBMODULES}
    return sorted(names | {f"{each}_" for each in _IN_PLACE})


_ports.watch(_sys.modules[__name__])
