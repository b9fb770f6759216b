# SPDX-License-Identifier: Apache-2.0
"""Complex tensors as pairs of real numbers."""

from __future__ import annotations

from tenon._core import Tensor
from tenon._core import operator as _operator


def parts(tensor: Tensor) -> Tensor:
    """A complex tensor as its real and imaginary parts, a view with one more axis; others as they are. Without history."""
    return _operator("as_real")(tensor.detach()) if tensor.dtype.is_complex else tensor
