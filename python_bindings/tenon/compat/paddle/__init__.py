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

from tenon.compat._signed import SignedNamespace as _Namespace
from tenon.compat.paddle._attributes import ParamAttr
from tenon.compat.paddle._device import (
    _load_for_unknown_device,  # noqa: F401
    device_plugins,
    kernel_table,
    load_all,
    load_device_plugin,
)

__all__ = [
    "LazyGuard",
    "ParamAttr",
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


_SUBMODULES = (
    "amp",
    "distributed",
    "fft",
    "geometric",
    "incubate",
    "io",
    "linalg",
    "metric",
    "nn",
    "optimizer",
    "regularizer",
    "signal",
    "sparse",
    "static",
)
_namespace = _Namespace(
    "paddle",
    " ".join(
        f"{__name__}.{each}"
        for each in (
            "_functions",
            "_arrays",
            "_composed",
            "_selection",
            "_spelled",
            "_written_over",
        )
    ),
    signatures=f"{__name__}._signatures",
    ignored=["name", "only_inputs"],  # a label, and a parameter that Paddle says is always true
    aliases={"input": "x", "other": "y", "dim": "axis"},
)


def __getattr__(name: str) -> _Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'tenon.compat.paddle' has no attribute '{name}'")
    if name == "LazyGuard":
        value: _Any = _importlib.import_module(f"{__name__}._lazy").LazyGuard
    elif name in _SUBMODULES:
        value = _importlib.import_module(f"{__name__}.{name}")
    else:
        value = _namespace.find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_namespace.names(), *_SUBMODULES, *__all__})
