# SPDX-License-Identifier: Apache-2.0
"""Numbers, texts and containers of them as JSON that gives them back as they were."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def encoded(value: Any, path: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [encoded(item, path) for item in value]}
    if isinstance(value, list):
        return [encoded(item, path) for item in value]
    if isinstance(value, Mapping):
        return {"$dict": [[encoded(key, path), encoded(item, path)] for key, item in value.items()]}
    raise TypeError(
        f"checkpoint: expected tensors, numbers, texts, None, containers of them, and objects with state_dict(), got "
        f"{type(value).__name__} at {path or 'the top'!r}"
    )


def decoded(node: Any) -> Any:
    if isinstance(node, list):
        return [decoded(item) for item in node]
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind == "$float":
        return _FLOATS[content]
    if kind == "$tuple":
        return tuple(decoded(item) for item in content)
    if kind == "$dict":
        return {decoded(key): decoded(item) for key, item in content}
    raise ValueError(f"unknown node {kind!r}")
