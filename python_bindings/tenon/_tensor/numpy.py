# SPDX-License-Identifier: Apache-2.0
"""NumPy, imported when a name of it is first used: Tenon does not need it, a few functions that run on the host do."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError(
            "this function computes on the host with NumPy, which is not installed: pip install numpy"
        ) from error
    return getattr(numpy, name)
