# SPDX-License-Identifier: Apache-2.0
"""paddle.static: of it the module `nn`, as there is no program to build: `tenon.compile` and `tenon.export` record functions."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["nn"]


def __getattr__(name: str) -> Any:
    if name == "nn":
        return importlib.import_module(f"{__name__}.nn")
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.static.{name}: there is no program to build; record a function with tenon.export"
    )


def __dir__() -> list[str]:
    return __all__
