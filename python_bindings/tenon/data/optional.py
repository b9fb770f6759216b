# SPDX-License-Identifier: Apache-2.0
"""Packages that only some datasets need."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, package: str, user: str) -> Any:
    """The module, or an ImportError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{user}: expected the package {package}, got {error}; install it: pip install {package}",
            name=module,
        ) from None
