# SPDX-License-Identifier: Apache-2.0
"""Tensors of other libraries without a copy, through DLPack; torch.utils.dlpack has the same functions."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def from_dlpack(source: Any) -> Tensor:
    """A tensor on the memory of `source`: whatever has __dlpack__(), or the capsule that this returned."""
    return tenon.from_dlpack(source)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule with the tensor's memory, which one consumer may take."""
    return tensor.__dlpack__()
