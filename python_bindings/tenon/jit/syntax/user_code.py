# SPDX-License-Identifier: Apache-2.0
"""Which functions users wrote, and which are of this package and of the standard library."""

from __future__ import annotations

import os
import sysconfig
import types

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
# Of the package's own functions these call what users wrote.
_OPEN = tuple(os.path.join(PACKAGE, "nn", name) for name in ("module.py", "containers.py"))
_LIBRARY = tuple(
    path + os.sep for key in ("stdlib", "platstdlib") if (path := sysconfig.get_path(key))
)


def is_users(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    if file.startswith(PACKAGE):
        return file in _OPEN or hasattr(function, "__wrapped__")
    if file.startswith(_LIBRARY) and "-packages" not in file:
        return hasattr(function, "__wrapped__")  # a decorator of the standard library
    return (
        not file.startswith("<frozen") and (function.__module__ or "").partition(".")[0] != "numpy"
    )
