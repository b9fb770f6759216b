# SPDX-License-Identifier: Apache-2.0
"""Matrices as blocks of small integers and scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tenon
from tenon import Tensor
from tenon.llm.models.blocks import FORMATS, BlockWeight

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

QUANTIZABLE = ("q8_0", "q4_0")


def quantize(weight: Tensor, format: str) -> BlockWeight:
    """The rows of a float32 `weight` [..., columns] in blocks, bit for bit as the package `gguf` makes
    them: a float16 scale, and 32 whole numbers to the nearest, halves away from zero."""
    if format not in QUANTIZABLE:
        raise ValueError(f"quantize: expected one of {', '.join(QUANTIZABLE)}, got '{format}'")
    numbers, _ = FORMATS[format]
    if weight.shape[-1] % numbers:
        raise ValueError(f"quantize: expected rows of a multiple of {numbers}, got {weight.shape}")
    x = weight.numpy().astype(np.float32, copy=False).reshape(-1, numbers)
    if not np.isfinite(x).all():
        raise ValueError("quantize: expected finite numbers")
    blocks = _q8_0(x) if format == "q8_0" else _q4_0(x)
    return BlockWeight(tenon.from_numpy(blocks.reshape(*weight.shape[:-1], -1)), format)


def _q8_0(x):
    scale = np.abs(x).max(1, keepdims=True) / 127
    with np.errstate(divide="ignore"):
        inverse = np.where(scale == 0, 0, 1 / scale).astype(np.float32)
    codes = _rounded(x * inverse).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.uint8), codes.view(np.uint8)], 1)


def _q4_0(x):
    largest = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)  # with its sign
    scale = largest / -8
    with np.errstate(divide="ignore"):
        inverse = np.where(scale == 0, 0, 1 / scale).astype(np.float32)
    codes = np.trunc(np.float64(x) * np.float64(inverse) + 8.5).clip(0, 15).astype(np.uint8)
    halves = codes[:, :16] | codes[:, 16:] << 4
    return np.concatenate([scale.astype(np.float16).view(np.uint8), halves], 1)


def _rounded(x):
    """To the nearest whole number, halves away from zero."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)
