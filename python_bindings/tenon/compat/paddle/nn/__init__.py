# SPDX-License-Identifier: Apache-2.0
"""paddle.nn: layers with Paddle's parameters, defaults, shapes of weights and layouts. They are modules of
Tenon's, so that its optimizers train them. A layer that is not here is an AttributeError."""

from __future__ import annotations

from typing import Any

import tenon
from tenon.compat.paddle.nn import (
    _clip,
    _decoding,
    _layer,
    _parametrised,
    _recurrent,
    functional,
    initializer,
)

_OWN = {
    **{
        name: getattr(_layer, name)
        for name in "Identity Layer LayerList Parameter ParameterList Sequential".split()
    },
    **_layer.LAYERS,
    **{
        name: getattr(module, name)
        for module in (_clip, _decoding, _parametrised, _recurrent)
        for name in module.__all__
    },
    "functional": functional,
    "initializer": initializer,
}
globals().update(_OWN)
__all__ = sorted(_OWN)

# What Tenon calls a layer that Paddle spells otherwise.
_TENON = {"MultiHeadAttention": "MultiheadAttention", "LayerDict": "ModuleDict"}


def __getattr__(name: str) -> Any:
    text = f"tenon.compat.paddle does not cover paddle.nn.{name}"
    ours = _TENON.get(name, name)
    ours = ours if hasattr(tenon.nn, ours) else ours.replace("D", "d")
    if not name.startswith("_") and hasattr(tenon.nn, ours):
        text += f"; tenon.nn.{ours} has Tenon's meaning"
    raise AttributeError(f"{text}; docs/from_paddle.md says what is covered")


def __dir__() -> list[str]:
    return __all__
