# SPDX-License-Identifier: Apache-2.0
"""Matrices of float8 beside their scales, as checkpoints of 8 bits hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tenon
from tenon import Tensor

FLOAT8 = (tenon.float8_e4m3, tenon.float8_e5m2)


@dataclass(frozen=True, eq=False)
class Float8Weight:
    """`numbers` [out, in] of float8 times `scale`: one number, [out, 1], or one for each block of `block`
    rows and columns. `x_scale` is the scale of what the matrix meets, where the checkpoint fixes it.
    """

    numbers: Tensor
    scale: Tensor
    block: tuple[int, int] | None = None
    x_scale: Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.numbers.shape)

    def linear(self, x: Tensor, bias: Tensor | None, activations: str) -> Tensor:
        rounds = activations == "float8"
        return tenon.linear_fp8(
            x,
            self.numbers,
            self.scale,
            bias,
            self.x_scale if rounds else None,
            block=self.block,
            activations="float8" if rounds else "float",
        )

    def rows_at(self, indices: Tensor) -> Tensor:
        """Rows of the matrix in float32, of which these alone are made floats."""
        numbers = tenon.embedding(self.numbers, indices).to(tenon.float32)
        if self.block is None and self.scale.numel() == 1:
            return numbers * self.scale.reshape([])
        height, width = self.block or (1, None)
        at = tenon.floor_divide(tenon.remainder(indices, self.numbers.shape[0]), height)
        scale = tenon.embedding(self.scale, at)
        if width is not None:
            scale = tenon.repeat(scale, width, -1)[..., : numbers.shape[-1]]
        return numbers * scale

    def split(self, rows: Sequence[int]) -> list[Float8Weight] | None:
        """Parts of so many rows each; None if a part would begin inside a block."""
        parts = tenon.split(self.numbers, list(rows), 0)
        if self.scale.numel() == 1:
            scales = [self.scale] * len(rows)
        else:
            height = 1 if self.block is None else self.block[0]
            if any(each % height for each in rows[:-1]):
                return None
            scales = tenon.split(self.scale, [-(-each // height) for each in rows], 0)
        return [
            Float8Weight(part, scale, self.block, self.x_scale)
            for part, scale in zip(parts, scales)
        ]

    def dequantized(self) -> Tensor:
        numbers, scale = self.numbers.to(tenon.float32), self.scale
        if self.block is not None:
            for axis, size in enumerate(self.block):
                scale = tenon.repeat(scale, size, axis)
            scale = scale[: numbers.shape[0], : numbers.shape[1]]
        return numbers * scale
