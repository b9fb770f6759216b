# SPDX-License-Identifier: Apache-2.0
"""vmap: a function of one sample, called for a whole batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._tensor.batched import (
    RUNNING,
    Batched,
    gradient_like,
    levels_of,
    nest_like,
    raw_of,
    running,
    running_levels,
    with_levels,
)
from tenon.func import layer_rules, shape_rules  # noqa: F401  they register their rules
from tenon.func.rules import call_operator
from tenon.func.tree import flatten, spread, unflatten

__all__ = [
    "gradient_like",
    "levels_of",
    "lift",
    "nest_like",
    "raw_of",
    "running",
    "running_levels",
    "vmap",
]

_core._set_batched(Batched, call_operator)


def lift(x: Tensor, like: Tensor | None = None) -> Tensor:
    """`x` with all batches of the vmap()s that are running, or with those of `like`: what each
    sample has a derivative of its own by."""
    levels = list(reversed(RUNNING.levels)) if like is None else levels_of(like)
    return with_levels(x, levels)


def _movedim(x: Tensor, source: int, destination: int) -> Tensor:
    return x if source == destination else _core.operator("movedim")(x, source, destination)


def _batch_size(leaves: list[Any], axes: list[Any]) -> int:
    sizes = {}
    for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not isinstance(leaf, Tensor):
            raise TypeError(
                f"vmap: expected a tensor where in_dims is {axis}, got {type(leaf).__name__}; give None "
                f"in in_dims for what all samples share"
            )
        if not -leaf.ndim <= axis < leaf.ndim:
            raise ValueError(
                f"vmap: expected in_dims below the {leaf.ndim} axes of input {i}, got {axis}"
            )
        sizes[leaf.shape[axis]] = i
    if not sizes:
        raise ValueError("vmap: expected an input with a batch, got in_dims of None alone")
    if len(sizes) > 1:
        raise ValueError(f"vmap: expected one size of the batch in all inputs, got {sorted(sizes)}")
    return next(iter(sizes))


def vmap(
    function: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that calls `function` for every sample of its arguments at once, and stacks the
    results.

    `in_dims`: for each argument the axis of its batch, or None where all samples share it; one
    number for all; a nest like the arguments. Keyword arguments are shared by all samples.
    `out_dims` says in the same way where the batch is in the results. With `chunk_size` the batch
    is processed in parts of that size.

    `function` sees tensors of one sample's shape. Each operator it calls is called once for the
    batch, by a rule, or, where there is no rule, once for each sample: results are the same, and
    `tenon.func.rules.loops()` lists which operators took that way. Random operators without
    batched arguments give all samples the same numbers. A function that reads values (`if x > 0`,
    `.item()`) is an error: there are several.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, rebuild = flatten(args)
        axes = spread(in_dims, args, "vmap: in_dims")
        size = _batch_size(leaves, axes)
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"vmap: expected a chunk_size of at least 1, got {chunk_size}")
        if chunk_size is None or chunk_size >= size:
            return _call(function, leaves, axes, rebuild, size, out_dims, kwargs)
        parts = []
        for start in range(0, size, chunk_size):
            length = min(chunk_size, size - start)
            chunk = [
                leaf if axis is None else _core.operator("narrow")(leaf, axis, start, length)
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            parts.append(_call(function, chunk, axes, rebuild, length, out_dims, kwargs))
        flat = [flatten(part) for part in parts]
        out_axes = spread(out_dims, parts[0], "vmap: out_dims")
        joined = [
            _core.operator("concat")(list(of_chunks), axis)
            for of_chunks, axis in zip(
                zip(*(leaves for leaves, _ in flat), strict=True), out_axes, strict=True
            )
        ]
        return unflatten(flat[0][1], joined)

    return wrapper


def _call(
    function: Callable[..., Any],
    leaves: list[Any],
    axes: list[Any],
    rebuild: Any,
    size: int,
    out_dims: Any,
    kwargs: dict[str, Any],
) -> Any:
    level = len(RUNNING.levels) + 1
    inputs = [
        leaf if axis is None else Batched(_movedim(leaf, axis, 0), level)
        for leaf, axis in zip(leaves, axes, strict=True)
    ]
    RUNNING.levels.append((level, size))
    try:
        result = function(*unflatten(rebuild, inputs), **kwargs)
        outputs, rebuild_result = flatten(result)
        refuse_lost(outputs, leaves)
        out_axes = spread(out_dims, result, "vmap: out_dims")
        physical = [
            _physical(out, axis, level, size) for out, axis in zip(outputs, out_axes, strict=True)
        ]
    finally:
        RUNNING.levels.pop()
    return unflatten(rebuild_result, physical)


def _physical(out: Any, axis: int, level: int, size: int) -> Tensor:
    """A result with the batch at `axis`; of samples that all agree, repeated."""
    if not isinstance(out, Tensor):
        raise TypeError(
            f"vmap: expected tensors from the function, got {type(out).__name__}; return a tensor, or "
            f"keep it out of the results"
        )
    if not isinstance(out, Batched) or out.level < level:
        shape = (size, *out.shape)
        out = _core.operator("expand")(_core.operator("unsqueeze")(out, [0]), shape)
    else:
        out = out.physical
    return _movedim(out, 0, axis)


def refuse_lost(outputs: list[Any], inputs: list[Any]) -> None:
    """An error for a tensor without memory that comes from tensors with memory: what made it read
    the shape and dtype of a sample, and not the batch, so that values and gradients are lost."""
    tensors = [raw_of(x) for x in inputs if isinstance(x, Tensor)]
    if not RUNNING.levels or any(x.device.kind == "meta" for x in tensors):
        return
    if any(isinstance(x, Tensor) and raw_of(x).device.kind == "meta" for x in outputs):
        raise RuntimeError(
            "vmap: expected a function of operators, got a tensor on the device meta: something in it "
            "read a sample past tenon's operators, and its values and gradients are lost; call the "
            "operators, or tenon.Function"
        )
