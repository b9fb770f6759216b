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

    Tensors, arrays and numbers become a tensor with one more axis, Python's floats one of float64,
    which keeps their digits; tuples, lists and dicts are stacked element by element; strings become
    a list. Samples of different kinds are a TypeError, different shapes a ValueError.
    """
    return collate_into(samples, None)


def collate_into(samples: Sequence[Any], allocate: Allocate | None) -> Any:
    """default_collate, with tensors in memory that `allocate` gives: what crosses to another process
    is written there at once instead of being copied there afterwards."""
    first = samples[0]
    if isinstance(first, Tensor):
        _check_kinds(samples, lambda sample: isinstance(sample, Tensor))
        return _stack(list(samples), allocate)
    if isinstance(first, (bool, int, float)):
        _check_kinds(samples, _is_number)
        has_floats = any(isinstance(sample, float) for sample in samples)
        return tenon.tensor(list(samples), dtype=tenon.float64 if has_floats else None)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, Mapping):
        _check_kinds(samples, lambda sample: isinstance(sample, Mapping))
        _check_keys(samples)
        return {key: collate_into([sample[key] for sample in samples], allocate) for key in first}
    if isinstance(first, (tuple, list)):
        _check_kinds(samples, lambda sample: isinstance(sample, (tuple, list)))
        if any(len(sample) != len(first) for sample in samples):
            raise ValueError(
                "default_collate: samples of one batch differ in length; pass collate_fn"
            )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        columns = (collate_into(column, allocate) for column in zip(*samples))
        return type(first)(*columns)
    if isinstance(first, (tuple, list)):
        return [collate_into(column, allocate) for column in zip(*samples)]
    if _is_array(first):
        _check_kinds(samples, _is_number)
        return _stack([tenon.asarray(sample) for sample in samples], allocate)
    raise TypeError(
        "default_collate: expected tensors, arrays, numbers, strings, or tuples, lists and "
        f"dicts of them, got {type(first).__name__}; pass collate_fn"
    )


def convert(sample: Any) -> Any:
    """A sample that is no part of a batch: its arrays become tensors, everything else stays."""
    if isinstance(sample, Tensor):
        return sample
    if isinstance(sample, Mapping):
        return {key: convert(value) for key, value in sample.items()}
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(convert, sample))
    if isinstance(sample, (tuple, list)):
        return type(sample)(map(convert, sample))
    return tenon.asarray(sample) if _is_array(sample) else sample


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__")


def _is_number(value: Any) -> bool:
    """Numbers, and arrays of them."""
    return isinstance(value, (bool, int, float)) or _is_array(value)


def _check_kinds(samples: Sequence[Any], is_kind: Callable[[Any], bool]) -> None:
    for sample in samples:
        if not is_kind(sample):
            raise TypeError(
                "default_collate: expected samples of one kind in a batch, got "
                f"{type(samples[0]).__name__} and {type(sample).__name__}; pass collate_fn"
            )


def _check_keys(samples: Sequence[Mapping[Any, Any]]) -> None:
    for sample in samples:
        if sample.keys() != samples[0].keys():
            raise ValueError(
                "default_collate: expected samples of one batch to have the same keys, got "
                f"{list(samples[0])} and {list(sample)}; pass collate_fn"
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
