# SPDX-License-Identifier: Apache-2.0
"""How samples become a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon
from tenon import Tensor

# Memory for a tensor of this shape and dtype, or None: then the operator allocates it.
Allocate = Callable[[Sequence[int], Any], Tensor | None]


def default_collate(samples: Sequence[Any]) -> Any:
    """Stack samples.

    Tensors, arrays and numbers become a tensor with one more axis; tuples, lists and dicts are
    stacked element by element; strings become a list.
    """
    return collate_into(samples, None)


def collate_into(samples: Sequence[Any], allocate: Allocate | None) -> Any:
    """default_collate, with tensors in memory that `allocate` gives: what crosses to another process
    is written there at once instead of being copied there afterwards."""
    first = samples[0]
    if isinstance(first, Tensor):
        return _stack(list(samples), allocate)
    if isinstance(first, (bool, int, float)):
        return tenon.tensor(list(samples))
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        return {key: collate_into([sample[key] for sample in samples], allocate) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = (collate_into(column, allocate) for column in zip(*samples))
        return type(first)(*columns)
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError(
                "default_collate: samples of one batch differ in length; pass collate_fn"
            )
        return [collate_into(column, allocate) for column in zip(*samples)]
    if hasattr(first, "__array__") or hasattr(first, "__array_interface__"):
        return _stack([tenon.asarray(sample) for sample in samples], allocate)
    raise TypeError(
        "default_collate: expected tensors, arrays, numbers, strings, or tuples, lists and "
        f"dicts of them, got {type(first).__name__}; pass collate_fn"
    )


def _stack(tensors: list[Tensor], allocate: Allocate | None) -> Tensor:
    first = tensors[0]
    if allocate is None or any(
        tensor.dtype != first.dtype or tensor.requires_grad or tensor.device != first.device
        for tensor in tensors
    ):
        return tenon.stack(tensors)
    out = allocate((len(tensors), *first.shape), first.dtype)
    return tenon.stack(tensors) if out is None else tenon.stack(tensors, out=out)
