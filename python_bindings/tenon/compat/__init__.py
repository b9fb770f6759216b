# SPDX-License-Identifier: Apache-2.0
"""What was written for other frameworks, running on Tenon: one package for each of them."""

import importlib as _importlib

_LIBRARIES = frozenset({"numpy", "paddle", "torch"})


def __getattr__(name):
    if name in _LIBRARIES:
        return _importlib.import_module(f"tenon.compat.{name}")
    raise AttributeError(f"module 'tenon.compat' has no attribute '{name}'")


def __dir__():
    return sorted(_LIBRARIES)
