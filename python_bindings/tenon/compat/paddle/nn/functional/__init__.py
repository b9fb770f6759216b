# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: functions with Paddle's parameters, defaults and layouts."""

from __future__ import annotations

import importlib
from typing import Any

import tenon
from tenon.compat._signed import bound
from tenon.compat.paddle.nn.functional._signatures import FUNCTIONS

_MODULES = "_activations _attention _convolutions _images _losses _normalization _pooling".split()


def _own() -> dict[str, Any]:
    modules = [importlib.import_module(f"{__name__}.{each}") for each in _MODULES]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def __getattr__(name: str) -> Any:
    own = {} if name.startswith("_") else _own()
    if name not in own:
        text = f"tenon.compat.paddle does not cover paddle.nn.functional.{name}"
        if not name.startswith("_") and hasattr(tenon.nn.functional, name):
            text += f"; tenon.nn.functional.{name} has Tenon's meaning"
        raise AttributeError(f"{text}; docs/from_paddle.md says what is covered")
    path = f"tenon.compat.paddle.nn.functional.{name}"
    value = bound(path, FUNCTIONS[name], own[name], ignored=frozenset({"name", "backend"}))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_own())
