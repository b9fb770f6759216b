# SPDX-License-Identifier: Apache-2.0
"""Claimers of sub-graphs and their options, as texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def claimer_options(options: str | Mapping[str, Any]) -> str:
    """{"exclude": ["softmax"], "threads": 2} as "exclude=softmax; threads=2"."""
    if isinstance(options, str):
        return options
    return "; ".join(f"{key}={_text(value)}" for key, value in options.items())


def claimers_text(claimers: str | Sequence[str] | Mapping[str, str | Mapping[str, Any]]) -> str:
    """{"onnxruntime": {"threads": 2}} as "onnxruntime: threads=2"; several are divided by |."""
    if isinstance(claimers, str):
        return claimers
    if not isinstance(claimers, Mapping):
        return "|".join(claimers)
    named = {name: claimer_options(options) for name, options in claimers.items()}
    return "|".join(f"{name}: {text}" if text else name for name, text in named.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
