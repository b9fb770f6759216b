# SPDX-License-Identifier: Apache-2.0
"""Device plugins and custom operators written for PaddlePaddle.

The folder of this package is what their build files know as the installed framework: it has
`include/` and `base/libpaddle.so`.
"""

import os as _os

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
