# SPDX-License-Identifier: Apache-2.0
"""The dtype in which PyTorch compares and divides two tensors, where one of them has no axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

# Calls whose results jump: bits that PyTorch's dtype does not have would decide them. The results of others are rounded to
# PyTorch's dtype afterwards, and differ in the last bits at most.
JUMPING: Final = frozenset(
    "div.Tensor_mode eq.Tensor floor_divide fmod.Tensor ge.Tensor gt.Tensor le.Tensor lt.Tensor ne.Tensor "
    "remainder.Tensor".split()
)
_KINDS: Final = ("bool", "int", "float")  # of a tensor without axes only a later kind counts


def _kind(value: Any) -> int:
    """The place in _KINDS; -1: none of them."""
    name = str(value.dtype).removeprefix("tenon.").removeprefix("u").replace("bfloat", "float")
    return next((rank for rank, kind in enumerate(_KINDS) if name.startswith(kind)), -1)


def promoted(add: Callable[..., Any], name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a jumping call, `self` and `other`, after a tensor without axes got the other's dtype where that is the
    dtype of the call."""
    result = dict(values)
    if name not in JUMPING:
        return result
    for one, another in (("self", "other"), ("other", "self")):
        number, tensor = values[one], values[another]
        if not (hasattr(number, "dtype") and hasattr(tensor, "dtype")):
            continue
        if number.ndim or not tensor.ndim or number.dtype == tensor.dtype:
            continue
        if 0 <= _kind(number) <= _kind(tensor):
            result[one] = add("cast", number, tensor.dtype)
    return result
