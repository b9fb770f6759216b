# SPDX-License-Identifier: Apache-2.0
"""Weights that stay in the blocks of a GGUF file, and are decoded while they are multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tenon
from tenon import Tensor

# format of linear_blocks: numbers and bytes of a block
FORMATS = {
    "q8_0": (32, 34),
    "q4_0": (32, 18),
    "q4_1": (32, 20),
    "q5_0": (32, 22),
    "q5_1": (32, 24),
    "q2_K": (256, 84),
    "q3_K": (256, 110),
    "q4_K": (256, 144),
    "q5_K": (256, 176),
    "q6_K": (256, 210),
    "iq4_nl": (32, 18),
    "iq4_xs": (256, 136),
    "mxfp4": (32, 17),
}


@dataclass(frozen=True, eq=False)
class BlockWeight:
    """A tensor whose rows, its last dimension, are blocks of `format`: `blocks` is uint8 [..., bytes].
    Shapes are those of the numbers. Parts are views."""

    blocks: Tensor
    format: str

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(
                f"BlockWeight: expected one of {', '.join(FORMATS)}, got '{self.format}'"
            )
        size = FORMATS[self.format][1]
        if self.blocks.dtype != tenon.uint8 or not self.blocks.ndim or self.blocks.shape[-1] % size:
            raise ValueError(
                f"BlockWeight: expected uint8 rows of blocks of {size} bytes, got "
                f"{self.blocks.dtype} {tuple(self.blocks.shape)}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        numbers, size = FORMATS[self.format]
        *rows, last = self.blocks.shape
        return (*rows, last // size * numbers)

    def linear(self, x: Tensor, bias: Tensor | None, activations: str) -> Tensor:
        return tenon.linear_blocks(x, self.blocks, self.format, bias, activations=activations)

    def rows_at(self, indices: Tensor) -> Tensor:
        return tenon.embedding_blocks(self.blocks, indices, self.format)

    def __getitem__(self, index: int) -> BlockWeight:
        return BlockWeight(self.blocks[index], self.format)

    def split(self, rows: Sequence[int]) -> list[BlockWeight]:
        """Parts of so many rows each."""
        return [BlockWeight(part, self.format) for part in tenon.split(self.blocks, list(rows), 0)]

    def reordered(self, order: Tensor) -> BlockWeight:
        """A copy whose rows are those at `order`."""
        return BlockWeight(tenon.index_select(self.blocks, order, 0), self.format)

    def dequantized(self) -> Tensor:
        """The numbers, as float32."""
        return tenon.dequantize_blocks(self.blocks, self.format)
