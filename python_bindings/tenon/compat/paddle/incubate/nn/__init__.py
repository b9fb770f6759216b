# SPDX-License-Identifier: Apache-2.0
"""paddle.incubate.nn: layers of transformers whose steps are functions of `functional`."""

from __future__ import annotations

from typing import Any

from tenon.compat.paddle.incubate.nn import _layers
from tenon.compat.paddle.incubate.nn import functional as functional

for _name in _layers.__all__:
    globals()[_name] = getattr(_layers, _name)
__all__ = sorted([*_layers.__all__, "functional"])


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tenon.compat.paddle does not cover paddle.incubate.nn.{name}; docs/from_paddle.md says what is covered"
    )


def __dir__() -> list[str]:
    return __all__
