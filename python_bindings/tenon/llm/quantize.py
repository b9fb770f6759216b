# SPDX-License-Identifier: Apache-2.0
"""Matrices as blocks of small integers and scales."""

from __future__ import annotations

import tenon
from tenon import Tensor
from tenon.llm.models.blocks import FORMATS, BlockWeight

# The formats of GGUF that tenon.quantize_blocks makes; the others are read alone.
QUANTIZABLE = (
    *("q8_0", "q4_0", "q4_1", "q5_0", "q5_1"),
    *("q2_K", "q3_K", "q4_K", "q5_K", "q6_K"),
    *("iq4_nl", "iq4_xs"),
)


def quantize(weight: Tensor, format: str) -> BlockWeight:
    """The rows of a float32 `weight` [..., columns] in blocks. Those of 32 numbers are bit for bit what the
    package `gguf` makes, but for "iq4_nl", which it does not make, as it makes none of 256. Numbers have to be finite."""
    if format not in QUANTIZABLE:
        raise ValueError(f"quantize: expected one of {', '.join(QUANTIZABLE)}, got '{format}'")
    numbers, _ = FORMATS[format]
    if weight.shape[-1] % numbers:
        raise ValueError(f"quantize: expected rows of a multiple of {numbers}, got {weight.shape}")
    if not tenon.isfinite(weight).all():
        raise ValueError("quantize: expected finite numbers")
    return BlockWeight(tenon.quantize_blocks(weight.to(tenon.float32), format), format)
