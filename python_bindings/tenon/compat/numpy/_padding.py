# SPDX-License-Identifier: Apache-2.0
"""numpy.pad in all its modes."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.compat.numpy import _functions as base
from tenon.compat.numpy import _reductions as reductions
from tenon.compat.numpy._convert import as_tensor, kind_of

__all__ = ["pad"]

# What each mode takes beside the widths.
_SETTINGS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}
_STATISTICS: dict[str, Callable[..., Tensor]] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": reductions.mean,
    "median": reductions.median,
}


def _pairs(value: Any, count: builtins.int) -> list[tuple[Any, Any]]:
    """A value for both sides of each axis, of one value, a pair for all, or a pair for each."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        pairs: list[Any] = [(0, 0)] * count
        for axis, each in value.items():
            pairs[axis] = (each, each) if isinstance(each, builtins.int) else tuple(each)
        return pairs
    if not isinstance(value, (list, tuple)):
        return [(value, value)] * count
    if not any(isinstance(each, (list, tuple)) for each in value):
        if len(value) == 1:
            return [(value[0], value[0])] * count
        if len(value) == 2:
            return [(value[0], value[1])] * count
    parts = [tuple(each) if isinstance(each, (list, tuple)) else (each,) for each in value]
    parts = [each * 2 if len(each) == 1 else each for each in parts]
    parts = parts * count if len(parts) == 1 else parts
    if len(parts) != count or any(len(each) != 2 for each in parts):
        raise ValueError(f"pad(): expected a pair for each of {count} axes, got {value!r}")
    return parts


def pad(array: Any, pad_width: Any, mode: Any = "constant", **settings: Any) -> Tensor:
    """With margins: a number, a pair for all axes, or a pair for each. `mode` says what is in them."""
    if callable(mode):
        raise NotImplementedError(
            "pad(): expected the name of a mode, got a function, which would write into the margins"
        )
    if mode not in _SETTINGS:
        raise ValueError(f"pad(): expected a mode of {', '.join(_SETTINGS)}, got {mode!r}")
    unknown = sorted(set(settings) - set(_SETTINGS[mode]))
    if unknown:
        raise ValueError(
            f"pad(): expected of mode {mode!r} no keywords but {sorted(_SETTINGS[mode])}, got {unknown}"
        )
    given = {**_SETTINGS[mode], **settings}
    x = as_tensor(array)
    widths = [(base.int_of(a), base.int_of(b)) for a, b in _pairs(pad_width, x.ndim)]
    if any(each < 0 for pair in widths for each in pair):
        raise ValueError(f"pad(): expected widths of at least 0, got {pad_width!r}")
    value = next(iter(given.values()), None)
    values = _pairs(value, x.ndim)
    for axis, (width, each) in enumerate(zip(widths, values, strict=True)):
        if width == (0, 0):
            continue
        if x.shape[axis] == 0 and mode not in ("constant", "empty"):
            raise ValueError(f"pad(): expected elements along axis {axis} to pad with, got none")
        x = _padded(base.moveaxis(x, axis, 0), width, mode, each, axis)
    return x if any(map(any, widths)) else x.clone()


def _padded(
    x: Tensor, width: tuple[builtins.int, builtins.int], mode: str, value: Any, axis: builtins.int
) -> Tensor:
    """`x`, whose first axis is padded, with this axis at `axis` again."""
    if mode in ("edge", "wrap") or (mode in ("reflect", "symmetric") and value[0] == "even"):
        index = [_source(i, x.shape[0], mode) for i in range(-width[0], x.shape[0] + width[1])]
        made = base.take(x, as_tensor(index, _core.int64), 0)
        return base.moveaxis(made, 0, axis)
    if mode in ("reflect", "symmetric"):
        if value[0] != "odd":
            raise ValueError(f"pad(): expected reflect_type 'even' or 'odd', got {value[0]!r}")
        raise NotImplementedError("pad(): expected reflect_type 'even', got 'odd'")
    edges = []
    for side, count in enumerate(width):
        edges.append(_margin(x, side, count, mode, value[side]).to(dtype=x.dtype))
    return base.moveaxis(base.concatenate([edges[0], x, edges[1]]), 0, axis)


def _source(i: builtins.int, length: builtins.int, mode: str) -> builtins.int:
    """The index of the element at `i`, beyond the ends."""
    if mode == "edge":
        return builtins.min(builtins.max(i, 0), length - 1)
    if mode == "wrap":
        return i % length
    if mode == "symmetric":
        at = i % (2 * length)
        return at if at < length else 2 * length - 1 - at
    if length == 1:
        return 0
    at = i % (2 * length - 2)
    return at if at < length else 2 * length - 2 - at


def _margin(x: Tensor, side: builtins.int, count: builtins.int, mode: str, value: Any) -> Tensor:
    """`count` slices before (side 0) or behind the first axis of `x`."""
    rest = list(x.shape[1:])
    if mode in ("constant", "empty"):
        number = as_tensor(0 if mode == "empty" else value).to(dtype=x.dtype)
        return _core.operator("expand")(number, [count, *rest])
    if mode == "linear_ramp":
        edge = (x[:1] if side == 0 else x[-1:]).to(dtype=_core.float64)
        steps = _core.operator("arange")(1, count + 1, 1, dtype=_core.float64)
        steps = (steps.flip(0) if side == 0 else steps).reshape([-1] + [1] * len(rest))
        ramp = edge + (float(value) - edge) * (steps / count if count else steps)
        return _core.operator("floor")(ramp) if kind_of(x.dtype) == "i" else ramp
    length = x.shape[0] if value is None else builtins.min(base.int_of(value), x.shape[0])
    if length < 1:
        raise ValueError(f"pad(): expected a stat_length of at least 1, got {value}")
    part = x[:length] if side == 0 else x[x.shape[0] - length :]
    found = _STATISTICS[mode](part, 0, keepdims=True)
    if kind_of(x.dtype) == "i" and mode in ("mean", "median"):
        found = _core.operator("round")(found)
    return _core.operator("expand")(found, [count, *rest])
