# SPDX-License-Identifier: Apache-2.0
"""What tells one call of a compiled function from another: its tensors, where they lie, and the modes around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import sharded_calls
from tenon.jit.capture_rules import PLAIN


class Refused(Exception):
    """Why a call has no signature, or a signature no program."""


def span(tensor: Tensor) -> tuple[int, int]:
    """Addresses of the first and behind the last element; of a sharded tensor in this rank's part."""
    tensor = sharded_calls.local_of(tensor)
    if not tensor.numel():
        return 0, 0
    if tensor.layout != "strided":
        raise Refused(f"programs hold plain tensors, and it reads one of layout {tensor.layout}")
    start, size = tensor.data_ptr(), tensor.element_size()
    if tensor.is_contiguous():
        return start, start + tensor.numel() * size
    ends = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides)]
    low, high = sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)
    return start + low * size, start + (high + 1) * size


def overlap(spans: list[tuple[int, int]]) -> bool:
    spans = sorted(spans)
    return any(a[1] > b[0] for a, b in zip(spans, spans[1:]))


def described(tensors: Sequence[Tensor]) -> Any:
    return [
        (
            type(t),
            t.shape,
            t.strides,
            t.dtype,
            t.device,
            t.requires_grad,
            t.is_leaf,
            repr(getattr(t, "__dict__", None)),
        )
        for t in tensors
    ]


def modes() -> Any:
    return (
        _core.amp_dtype(),
        _core.is_grad_enabled(),
        _core.is_deterministic(),
        _core.get_default_dtype(),
        _core.get_device(),
    )


def describe(structure: list[Any], tensors: list[Tensor]) -> str:
    shapes = iter(tensors)

    def text(part: list[Any]) -> str:
        if part[0] == "tensor":
            tensor = next(shapes)
            return f"{tensor.dtype.name}{list(tensor.shape)}"
        if part[0] == "value":
            return repr(part[1])
        if part[0] == "dict":
            return "{" + ", ".join(f"{key}: {text(item)}" for key, item in part[1]) + "}"
        return "(" + ", ".join(text(item) for item in part[1]) + ")"

    args, kwargs = structure[1]
    named = [f"{key}={text(item)}" for key, item in kwargs[1]] if kwargs[1] else []
    return "(" + ", ".join([text(item) for item in args[1]] + named) + ")"


def hashable(structure: list[Any]) -> Any:
    """The structure as a key. Values in it are plain, or the call is refused."""
    kind = structure[0]
    if kind == "tensor":
        return kind
    if kind == "value":
        value = structure[1]
        # What derives from these may mean more than its value.
        if type(value) not in PLAIN and not isinstance(value, (slice, _core.dtype, _core.device)):
            raise Refused(
                f"expected arguments and results made of tensors and plain values, got "
                f"{type(value).__name__}"
            )
        return type(value), repr(value)
    if kind == "dict":
        if any(type(key) not in PLAIN for key, _ in structure[1]):
            raise Refused("expected dictionaries whose keys are plain values")
        return kind, tuple((type(key), repr(key), hashable(item)) for key, item in structure[1])
    return kind, tuple(hashable(item) for item in structure[1])
