# SPDX-License-Identifier: Apache-2.0
"""Primitives of JAX that read and write by indices or windows.

Gather and scatter are general: each element of a window has its number in the flat operand, which is worked out from the starts
of the windows; rows of a table, the usual case, are read and added to as such.
"""

from __future__ import annotations

import math
from typing import Any, Final

import tenon
from tenon._core import Tensor
from tenon.jax._primitives import padded
from tenon.jit.foreign_calls import Refused


def _steps(shape: Any) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _along(walk: Any, count: int, axis: int, ndim: int, factor: int) -> Tensor:
    """0, factor, 2 * factor, ... along one axis of `ndim`."""
    numbers = tenon.arange(0, count * factor, factor, dtype="int64")
    return walk.constant(tenon.reshape(numbers, [count if at == axis else 1 for at in range(ndim)]))


def _mode(equation: Any) -> str:
    return str(equation.params["mode"]).rpartition(".")[2].upper()


def _windows(
    walk: Any,
    indices: Tensor,
    shape: Any,
    sizes: Any,
    index_axes: Any,
    batch_axes: Any,
    index_batch_axes: Any,
    window_axes: Any,
    result_shape: Any,
    clips: bool,
) -> tuple[Tensor, Tensor | None]:
    """For each element of the result of a gather (or of a scatter's updates) its number in the flat operand of `shape`, and whether
    its window lies inside, None where all do. `sizes`: of windows along all axes of the operand; `window_axes`: of the result."""
    ndim = len(result_shape)
    outer = [axis for axis in range(ndim) if axis not in window_axes]
    steps = _steps(shape)
    parts: list[Tensor] = []
    inside: Tensor | None = None
    outer_shape = [result_shape[axis] if axis in outer else 1 for axis in range(ndim)]
    indices = walk.call("cast", indices, tenon.int64)
    for number, axis in enumerate(index_axes):
        start = walk.call("select", indices, indices.ndim - 1, number)
        start = walk.call("reshape", start, outer_shape)
        most = shape[axis] - sizes[axis]
        if clips:
            start = walk.call("clip", start, 0, most)
        else:
            fits = walk.call(
                "logical_and",
                walk.call("greater_equal", start, 0),
                walk.call("less_equal", start, most),
            )
            inside = fits if inside is None else walk.call("logical_and", inside, fits)
            start = walk.call("clip", start, 0, most)
        parts.append(walk.call("multiply", start, steps[axis]))
    for axis, index_axis in zip(batch_axes, index_batch_axes, strict=True):
        parts.append(_along(walk, shape[axis], outer[index_axis], ndim, steps[axis]))
    kept = [axis for axis in range(len(shape)) if axis not in _gone(sizes, batch_axes)]
    for axis, result_axis in zip(kept, window_axes, strict=True):
        if sizes[axis] > 1:
            parts.append(_along(walk, sizes[axis], result_axis, ndim, steps[axis]))
    total = parts[0] if parts else walk.constant(tenon.zeros([1] * ndim, dtype="int64"))
    for part in parts[1:]:
        total = walk.call("add", total, part)
    return walk.call("expand", total, list(result_shape)), inside


class _Sizes(list):
    """Sizes of windows, with the axes that results do not have."""

    collapsed: tuple[int, ...] = ()


def _gone(sizes: Any, batch_axes: Any) -> tuple[int, ...]:
    return (*sizes.collapsed, *batch_axes)


def gather(walk: Any, equation: Any, x: Tensor, indices: Any) -> Any:
    params = equation.params
    numbers = params["dimension_numbers"]
    indices = walk.tensor(indices, str(equation.invars[1].aval.dtype))
    mode = _mode(equation)
    sizes = _Sizes(params["slice_sizes"])
    sizes.collapsed = tuple(numbers.collapsed_slice_dims)
    result = list(equation.outvars[0].aval.shape)
    batch = tuple(getattr(numbers, "operand_batching_dims", ()))
    index_batch = tuple(getattr(numbers, "start_indices_batching_dims", ()))
    flat, inside = _windows(
        walk,
        indices,
        list(x.shape),
        sizes,
        numbers.start_index_map,
        batch,
        index_batch,
        tuple(numbers.offset_dims),
        result,
        mode in ("CLIP", "PROMISE_IN_BOUNDS"),
    )
    if _are_rows(x, sizes, numbers, batch, indices, result):
        rows = walk.call(
            "reshape", walk.call("cast", indices, tenon.int64), result[: indices.ndim - 1]
        )
        found = walk.call("embedding", x, walk.call("clip", rows, 0, x.shape[0] - 1))
    else:
        taken = walk.call(
            "index_select", walk.call("reshape", x, [-1]), walk.call("reshape", flat, [-1]), 0
        )
        found = walk.call("reshape", taken, result)
    if inside is None:
        return found
    fill = params.get("fill_value")
    if fill is None:
        fill = _fill(str(x.dtype).removeprefix("tenon."))
    return walk.call("where", inside, found, fill)


def _are_rows(
    x: Tensor, sizes: Any, numbers: Any, batch: Any, indices: Tensor, result: Any
) -> bool:
    return (
        tuple(numbers.start_index_map) == (0,)
        and sizes.collapsed == (0,)
        and not batch
        and list(sizes)[1:] == list(x.shape)[1:]
        and tuple(numbers.offset_dims) == tuple(range(indices.ndim - 1, len(result)))
    )


def _fill(dtype: str) -> Any:
    if dtype.startswith(("float", "bfloat", "complex")):
        return math.nan
    if dtype == "bool":
        return True
    info = tenon.iinfo(getattr(tenon, dtype))
    return info.max if dtype.startswith("uint") else info.min


_REDUCTIONS: Final = {
    "scatter": None,
    "scatter-add": "sum",
    "scatter_add": "sum",
    "scatter-mul": "prod",
    "scatter_mul": "prod",
    "scatter-min": "amin",
    "scatter_min": "amin",
    "scatter-max": "amax",
    "scatter_max": "amax",
    "scatter-sub": "sum",
    "scatter_sub": "sum",
}


def scatter(walk: Any, equation: Any, x: Any, indices: Any, updates: Any) -> Any:
    params = equation.params
    kind = equation.primitive.name
    dtype = str(equation.invars[0].aval.dtype)
    x, updates = walk.tensor(x, dtype), walk.tensor(updates, dtype)
    indices = walk.tensor(indices, str(equation.invars[1].aval.dtype))
    if kind in ("scatter-sub", "scatter_sub"):
        updates = walk.call("negative", updates)
    numbers = params["dimension_numbers"]
    shape = list(x.shape)
    batch = tuple(getattr(numbers, "operand_batching_dims", ()))
    collapsed = tuple(numbers.inserted_window_dims)
    window = tuple(numbers.update_window_dims)
    kept = [axis for axis in range(len(shape)) if axis not in (*collapsed, *batch)]
    sizes = _Sizes([1] * len(shape))
    sizes.collapsed = collapsed
    for axis, update_axis in zip(kept, window, strict=True):
        sizes[axis] = updates.shape[update_axis]
    flat, inside = _windows(
        walk,
        indices,
        shape,
        sizes,
        numbers.scatter_dims_to_operand_dims,
        batch,
        tuple(getattr(numbers, "scatter_indices_batching_dims", ())),
        window,
        list(updates.shape),
        _mode(equation) in ("CLIP", "PROMISE_IN_BOUNDS"),
    )
    return _written(walk, x, flat, inside, updates, _REDUCTIONS[kind])


def _written(
    walk: Any, x: Tensor, flat: Tensor, inside: Tensor | None, updates: Tensor, reduce: str | None
) -> Tensor:
    """What lies outside is written to an element behind the last, which is cut off."""
    shape, count = list(x.shape), x.numel()
    target = walk.call("reshape", x, [-1])
    if inside is not None:
        flat = walk.call("where", inside, flat, count)
        target = padded(walk, target, [0, 1], 0)
    flat, source = walk.call("reshape", flat, [-1]), walk.call("reshape", updates, [-1])
    if reduce is None:
        target = walk.call("index_put", target, [flat], source)
    elif reduce == "sum":
        target = walk.call("index_add", target, flat, source, 0)
    else:
        target = walk.call("scatter_reduce", target, flat, source, 0, reduce=reduce)
    if inside is not None:
        target = walk.call("narrow", target, 0, 0, count)
    return walk.call("reshape", target, shape)


def dynamic_slice(walk: Any, equation: Any, x: Tensor, *starts: Any) -> Any:
    sizes = list(equation.params["slice_sizes"])
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        length = x.shape[axis]
        if size == length:
            continue
        if not isinstance(start, Tensor):
            x = walk.call("narrow", x, axis, min(max(int(start), 0), length - size), size)
            continue
        x = walk.call("index_select", x, _run(walk, start, size, length), axis)
    return x


def _run(walk: Any, start: Tensor, size: int, length: int) -> Tensor:
    """`size` numbers from where a slice starts, inside of the axis."""
    start = walk.call("clip", walk.call("cast", start, tenon.int64), 0, length - size)
    numbers = walk.constant(tenon.arange(0, size, 1, dtype="int64"))
    return walk.call("add", walk.call("reshape", start, [1]), numbers)


def dynamic_update_slice(walk: Any, equation: Any, x: Any, update: Any, *starts: Any) -> Any:
    dtype = str(equation.invars[0].aval.dtype)
    x, update = walk.tensor(x, dtype), walk.tensor(update, dtype)
    shape, sizes = list(x.shape), list(update.shape)
    cut = [axis for axis in range(len(shape)) if sizes[axis] != shape[axis]]
    numbers = [walk.tensor(each, "int32") for each in starts]
    if not cut:
        return update
    if len(cut) == 1:
        (axis,) = cut
        rows = _run(walk, numbers[axis], sizes[axis], shape[axis])
        return walk.call("index_copy", x, axis, rows, update)
    steps, flat = _steps(shape), None
    for axis in range(len(shape)):
        at = _run(walk, numbers[axis], sizes[axis], shape[axis])
        inner = [sizes[axis] if each == axis else 1 for each in range(len(shape))]
        part = walk.call("multiply", walk.call("reshape", at, inner), steps[axis])
        flat = part if flat is None else walk.call("add", flat, part)
    return _written(walk, x, walk.call("expand", flat, sizes), None, update, None)


# -- windows ----------------------------------------------------------------------------------------------


def _cut_windows(walk: Any, x: Tensor, params: Any, value: Any) -> Tensor:
    """The windows of each place, flat in the last axis."""
    if any(each != 1 for each in params.get("base_dilation") or (1,)):
        raise Refused("with base_dilation")
    margins = [number for pair in params["padding"] for number in pair]
    if any(margins):
        x = padded(walk, x, margins, value)
    ndim = x.ndim
    apart = params.get("window_dilation") or [1] * ndim
    for axis, (size, step) in enumerate(
        zip(params["window_dimensions"], params["window_strides"], strict=True)
    ):
        x = walk.call("sliding_window", x, axis, size, step, apart[axis])
    return walk.call("reshape", x, [*list(x.shape)[:ndim], -1])


def reduce_window(name: str, value: Any) -> Any:
    def told(walk: Any, equation: Any, x: Tensor) -> Any:
        own = value
        if not str(equation.invars[0].aval.dtype).startswith(("float", "bfloat")) and name != "sum":
            raise Refused(f"of {equation.invars[0].aval.dtype}")
        return walk.call(name, _cut_windows(walk, x, equation.params, own), [-1], False)

    return told


def select_and_scatter_add(walk: Any, equation: Any, source: Tensor, x: Tensor) -> Any:
    """The first largest element of each window gets what the window has."""
    params = equation.params
    if "ge" not in str(params["select_prim"]):
        raise Refused("with another choice than the largest")
    shape, count = list(x.shape), x.numel()
    numbers = walk.constant(tenon.reshape(tenon.arange(0, count, 1, dtype="int64"), shape))
    windows = _cut_windows(walk, x, params, -math.inf)
    at = walk.call("argmax", windows, -1, True)
    flat = walk.call("take_along_axis", _cut_windows(walk, numbers, params, count), at, -1)
    zeros = walk.call("full", [count + 1], 0.0, dtype=x.dtype)
    total = walk.call(
        "index_add", zeros, walk.call("reshape", flat, [-1]), walk.call("reshape", source, [-1]), 0
    )
    return walk.call("reshape", walk.call("narrow", total, 0, 0, count), shape)


TABLE: Final[dict[str, Any]] = {
    "gather": gather,
    **dict.fromkeys(_REDUCTIONS, scatter),
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "reduce_window_sum": reduce_window("sum", 0),
    "reduce_window_max": reduce_window("max", -math.inf),
    "reduce_window_min": reduce_window("min", math.inf),
    "select_and_scatter_add": select_and_scatter_add,
}
