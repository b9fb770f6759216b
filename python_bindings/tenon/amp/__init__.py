# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: products of matrices in bfloat16 or float16, what needs digits in float32."""

from . import debug
from .autocast import (
    autocast,
    black_list,
    get_autocast_dtype,
    is_autocast_enabled,
    operator_class,
    white_list,
)
from .decorate import decorate
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "black_list",
    "debug",
    "decorate",
    "get_autocast_dtype",
    "is_autocast_enabled",
    "operator_class",
    "white_list",
]
