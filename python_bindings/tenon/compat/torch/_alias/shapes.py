# SPDX-License-Identifier: Apache-2.0
"""torch.Size: the class of shapes under the alias."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Size"]


class Size(tuple):
    """A tuple of extents. Slices and sums of shapes are shapes, too."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if type(key) is slice else found

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, times: Any) -> Any:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


Size.__module__ = "torch"  # files name it so
