# SPDX-License-Identifier: Apache-2.0
"""What the decoder asks of matrices that are stored in few bits."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tenon import Tensor


@runtime_checkable
class PackedWeight(Protocol):
    """A matrix that is decoded while it is multiplied. `shape` is that of its numbers."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def linear(self, x: Tensor, bias: Tensor | None, activations: str) -> Tensor:
        """`x` times the matrix; what `activations` may be besides "float" is up to the kind."""
        ...

    def rows_at(self, indices: Tensor) -> Tensor:
        """The rows at `indices`, in float32."""
        ...

    def dequantized(self) -> Tensor:
        """The numbers, as float32."""
        ...
