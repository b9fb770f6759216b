# SPDX-License-Identifier: Apache-2.0
"""Functions by NumPy's names, with its parameters, defaults and results.

    from tenon.compat import numpy as np
    np.mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0, keepdims=True)

Numbers are float64 unless a dtype is given, functions take lists and arrays for tensors, and
results are tensors: float(...) or .item() gives a number (docs/compat_namespaces.md).
"""

import importlib
from typing import Any

from tenon.compat._signed import SignedNamespace

_FUNCTIONS = " ".join(
    f"{__name__}.{each}"
    for each in """_ufuncs _creation _elementwise _layout _ordering _products _reductions _padding _shapes
    _indexing _statistics _polynomial""".split()
)
_SUBMODULES = {"random": "_random", "linalg": "linalg", "fft": "fft"}
_namespace = SignedNamespace(
    "numpy",
    _FUNCTIONS,
    signatures=f"{__name__}._signatures",
    ignored=["overwrite_input"],  # a permission
)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'tenon.compat.numpy' has no attribute '{name}'")
    if name in _SUBMODULES:
        value: Any = importlib.import_module(f"tenon.compat.numpy.{_SUBMODULES[name]}")
    else:
        value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), *_SUBMODULES})
