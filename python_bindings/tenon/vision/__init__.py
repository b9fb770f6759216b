# SPDX-License-Identifier: Apache-2.0
"""Images: transforms, models, data sets and functions of detectors. Submodules are imported when they are first named."""

import importlib as _importlib

_SUBMODULES = ("datasets", "models", "ops", "transforms", "utils")


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted(_SUBMODULES)
