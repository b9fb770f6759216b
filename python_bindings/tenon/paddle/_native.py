# SPDX-License-Identifier: Apache-2.0
"""Operators of Paddle that a line of opdefs/paddle leaves to a function: those with lists to complete, or axes to move.

Each takes `call`, which adds a call of an operator to the program, and the parameters of the line by name. Shapes and axes are
numbers. A value whose elements are known has data; one that a run makes is a tensor of the device meta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import tenon
from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused

Value = Any
Add = Callable[..., Any]
_FAR: Final = 2**31 - 1  # what Paddle writes for the end of an axis
_FLOAT_MOST: Final = 3.4028234663852886e38


def kind_of(value: Value) -> str:
    return str(value.dtype).removeprefix("tenon.")


def _holds_integers(value: Value) -> bool:
    return kind_of(value).startswith(("int", "uint", "bool"))


def number(value: Any, what: str) -> Any:
    """Of what has to be known."""
    if isinstance(value, Tensor):
        raise Refused(f"its `{what}` depends on data")
    return value


def axes_of(axis: Any) -> list[int] | None:
    """No axes are all axes."""
    listed = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    return [int(each) for each in listed] or None


# -- arithmetic -------------------------------------------------------------------------------------------


def add_n(call: Add, inputs: Any) -> Value:
    total = inputs[0]
    for each in inputs[1:]:
        total = call("add", total, each)
    return total


def divide(call: Add, x: Value, y: Value) -> Value:
    """Of whole numbers the quotient without its fraction."""
    if _holds_integers(x) and _holds_integers(y):
        return call("trunc", call("divide", x, y))
    return call("divide", x, y)


def floor_divide(call: Add, x: Value, y: Value) -> Value:
    return call("floor_divide", x, y)


def power(call: Add, x: Value, y: Any) -> Value:
    if not isinstance(y, Tensor) and _holds_integers(x) and float(y).is_integer():
        y = int(y)
    return call("pow", x, y)


def scale(call: Add, x: Value, scale: Any, bias: Any, bias_after_scale: bool) -> Value:
    if _holds_integers(x):
        factors = [each for each in (scale, bias) if not isinstance(each, Tensor)]
        if all(float(each).is_integer() for each in factors):
            scale, bias = (e if isinstance(e, Tensor) else int(e) for e in (scale, bias))
    if isinstance(scale, Tensor):
        scale = call("cast", scale, x.dtype)
        if scale.ndim and scale.numel() == 1:
            scale = call("reshape", scale, [])
    has_bias = isinstance(bias, Tensor) or bias != 0
    if has_bias and not bias_after_scale:
        x = call("add", x, bias)
    if isinstance(scale, Tensor) or scale != 1:
        x = call("multiply", x, scale)
    if has_bias and bias_after_scale:
        x = call("add", x, bias)
    return x


def clip(call: Add, x: Value, min: Any, max: Any) -> Value:
    if not isinstance(min, Tensor) and min <= -_FLOAT_MOST:
        min = None
    if not isinstance(max, Tensor) and max >= _FLOAT_MOST:
        max = None
    if min is None and max is None:
        return x
    if _holds_integers(x):
        min, max = (int(e) if isinstance(e, float) else e for e in (min, max))
    return call("clip", x, min, max)


def increment(call: Add, x: Value, value: float) -> Value:
    return call("add", x, int(value) if _holds_integers(x) and value.is_integer() else value)


def hardsigmoid(call: Add, x: Value, slope: float, offset: float) -> Value:
    line = call("add", call("multiply", x, slope), offset)
    return call("clip", line, 0.0, 1.0)


def prelu(call: Add, x: Value, alpha: Value, data_format: str, mode: str) -> Value:
    if mode == "channel" and alpha.numel() > 1:
        count = x.ndim - 2 if data_format == "NCHW" else 0
        alpha = call("reshape", alpha, [-1] + [1] * count)
    elif mode == "element":
        alpha = call("reshape", alpha, [1, *list(x.shape)[1:]])
    return call("where", call("greater", x, 0.0), x, call("multiply", x, alpha))


def selu(call: Add, x: Value, scale: float, alpha: float) -> Value:
    grown = call("multiply", call("expm1", call("minimum", x, 0.0)), alpha)
    return call("multiply", call("add", call("relu", x), grown), scale)


def isclose(call: Add, x: Value, y: Value, rtol: Any, atol: Any, equal_nan: bool) -> Value:
    return call("isclose", x, y, float(rtol), float(atol), equal_nan)


def _bitwise(call: Add, name: str, x: Value, y: Value) -> Value:
    word = "logical" if kind_of(x) == "bool" else "bitwise"
    return call(f"{word}_{name}", x, y)


def bitwise_and(call: Add, x: Value, y: Value) -> Value:
    return _bitwise(call, "and", x, y)


def bitwise_or(call: Add, x: Value, y: Value) -> Value:
    return _bitwise(call, "or", x, y)


def bitwise_xor(call: Add, x: Value, y: Value) -> Value:
    return _bitwise(call, "xor", x, y)


def bitwise_not(call: Add, x: Value) -> Value:
    return call("logical_not" if kind_of(x) == "bool" else "bitwise_invert", x)


# -- constants --------------------------------------------------------------------------------------------


def _typed(value: Any, dtype: str) -> Any:
    """A number of a file, which has floats alone, as one of `dtype`."""
    if dtype == "bool":
        return bool(value)
    is_whole = dtype.startswith(("int", "uint")) and not isinstance(value, complex)
    return int(value) if is_whole else value


def full(call: Add, shape: Any, value: Any, dtype: str, place: Any = None) -> Value:
    if isinstance(value, Tensor):
        return call("expand", call("reshape", call("cast", value, dtype), []), list(shape))
    return call("full", list(shape), _typed(value, dtype), dtype=dtype)


def full_int_array(call: Add, value: Any, dtype: str, place: Any) -> Value:
    return tenon.tensor([int(each) for each in value], dtype=dtype)


def assign_value(call: Add, shape: Any, dtype: str, values: Any, place: Any) -> Value:
    numbers = [_typed(each, dtype) for each in values]
    if len(numbers) != math.prod(shape):
        raise Refused(f"it has {len(numbers)} values for the shape {list(shape)}")
    return call("reshape", tenon.tensor(numbers, dtype=dtype), list(shape))


def full_like(call: Add, x: Value, value: Any, dtype: str | None, place: Any) -> Value:
    return full(call, list(x.shape), value, dtype or kind_of(x))


def full_batch_size_like(
    call: Add,
    input: Value,
    shape: Any,
    dtype: str,
    value: Any,
    input_dim_idx: int,
    output_dim_idx: int,
    place: Any,
) -> Value:
    sizes = list(shape)
    sizes[output_dim_idx] = input.shape[input_dim_idx]
    return full(call, sizes, value, dtype)


def arange(call: Add, start: Value, end: Value, step: Value, dtype: str, place: Any) -> Value:
    numbers = [_item(each, name) for each, name in ((start, "start"), (end, "end"), (step, "step"))]
    return call("arange", *(_typed(each, dtype) for each in numbers), dtype=dtype)


def linspace(call: Add, start: Value, stop: Value, number: Value, dtype: str, place: Any) -> Value:
    first, last, count = (_item(each, "bounds") for each in (start, stop, number))
    return call("linspace", first, last, int(count), dtype=dtype)


def eye(call: Add, num_rows: Any, num_columns: Any, dtype: str, place: Any) -> Value:
    return call("eye", int(num_rows), int(num_columns), dtype=dtype)


def _item(value: Value, what: str) -> Any:
    """The one element of a tensor that is known."""
    if isinstance(value, Tensor):
        if value.device.type == "meta":
            raise Refused(f"its `{what}` depends on data")
        return value.item()
    return value


def one_hot(call: Add, x: Value, num_classes: Any) -> Value:
    return call("cast", call("one_hot", x, int(number(num_classes, "num_classes"))), "float32")


# -- sizes ------------------------------------------------------------------------------------------------


def size(call: Add, x: Value) -> Value:
    return tenon.tensor(x.numel(), dtype="int64")


def shape(call: Add, input: Value) -> Value:
    return tenon.tensor(list(input.shape), dtype="int32")


def shape64(call: Add, input: Value) -> Value:
    return tenon.tensor(list(input.shape), dtype="int64")


# -- shapes -----------------------------------------------------------------------------------------------


def reshape(call: Add, x: Value, shape: Any) -> Value:
    """A zero is the size that the axis has."""
    sizes = [
        x.shape[axis] if length == 0 and axis < x.ndim else length
        for axis, length in enumerate(shape)
    ]
    return call("reshape", x, sizes)


def flatten(call: Add, x: Value, start_axis: int, stop_axis: int) -> Value:
    return call("flatten", x, start_axis, stop_axis) if x.ndim else call("reshape", x, [1])


def squeeze(call: Add, x: Value, axis: Any) -> Value:
    """Axes that are longer stay."""
    named = axes_of(axis) or range(x.ndim)
    gone = [each for each in named if x.ndim and x.shape[each] == 1]
    return call("squeeze", x, gone) if gone else x


def unsqueeze(call: Add, x: Value, axis: Any) -> Value:
    """One axis after the other, each as a place in the shape so far."""
    for each in axes_of(axis) or []:
        x = call("unsqueeze", x, [each])
    return x


def expand(call: Add, x: Value, shape: Any) -> Value:
    """-1 keeps the size of an axis."""
    apart = len(shape) - x.ndim
    sizes = [
        x.shape[axis - apart] if length == -1 and axis >= apart else length
        for axis, length in enumerate(shape)
    ]
    return call("expand", x, sizes)


def expand_as(call: Add, x: Value, y: Value, target_shape: Any) -> Value:
    return call("expand", x, list(target_shape if y is None else y.shape))


def tile(call: Add, x: Value, repeat_times: Any) -> Value:
    times = [1] * (x.ndim - len(repeat_times)) + list(repeat_times)
    return call("tile", x, times)


def roll(call: Add, x: Value, shifts: Any, axis: Any) -> Value:
    return call("roll", x, list(shifts), list(axis) or None)


# -- joining and cutting ----------------------------------------------------------------------------------


def concat(call: Add, x: Any, axis: Any) -> Value:
    """An empty tensor of one axis among others is left out."""
    kept = [each for each in x if tuple(each.shape) != (0,)] or list(x)[:1]
    return call("concat", kept, int(number(axis, "axis"))) if len(kept) > 1 else kept[0]


def split(call: Add, x: Value, sections: Any, axis: Any) -> list[list[Value]]:
    at = int(number(axis, "axis"))
    known = sum(length for length in sections if length >= 0)
    pieces: list[Value] = []
    start = 0
    for length in sections:
        length = x.shape[at] - known if length < 0 else length
        pieces.append(call("narrow", x, at, start, length))
        start += length
    return [pieces]


def split_with_num(call: Add, x: Value, num: int, axis: Any) -> list[list[Value]]:
    at = int(number(axis, "axis"))
    if num < 1 or x.shape[at] % num:
        raise Refused(f"it cuts {x.shape[at]} elements into {num} parts")
    length = x.shape[at] // num
    return [[call("narrow", x, at, index * length, length) for index in range(num)]]


def _range(length: int, start: int, stop: int, step: int) -> tuple[int, int, int]:
    """Bounds inside of an axis, as Python's slices have them."""
    first, last, _ = slice(start, stop, step).indices(length)
    return first, last, step


def _cut(call: Add, x: Value, axes: Any, starts: Any, stops: Any, steps: Any) -> Value:
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        length = x.shape[axis]
        if step == 0:
            raise Refused("it has a step of 0")
        if step < 0:
            # Elements from the end, turned round: the last one that the step meets comes first.
            found = range(length)[slice(start, stop if stop >= -length else None, step)]
            if not len(found):
                x = call("slice", x, [axis], [0], [0], [1])
                continue
            x = call("slice", x, [axis], [found[-1]], [found[0] + 1], [-step])
            x = call("flip", x, [axis])
        else:
            first, last, _ = _range(length, start, stop, step)
            x = call("slice", x, [axis], [first], [max(first, last)], [step])
    return x


def slice_axes(
    call: Add,
    input: Value,
    axes: Any,
    starts: Any,
    ends: Any,
    infer_flags: Any,
    decrease_axis: Any,
) -> Value:
    cut = _cut(call, input, axes, starts, ends, [1] * len(axes))
    return call("squeeze", cut, list(decrease_axis)) if decrease_axis else cut


def strided_slice(call: Add, x: Value, axes: Any, starts: Any, ends: Any, strides: Any) -> Value:
    return _cut(call, x, axes, starts, ends, strides)


def set_value(
    call: Add,
    x: Value,
    starts: Any,
    ends: Any,
    steps: Any,
    axes: Any,
    decrease_axes: Any,
    none_axes: Any,
    shape: Any,
    values: Any,
) -> Value:
    source = assign_value(call, list(shape), kind_of(x), values, None)
    return set_value_with_tensor(
        call, x, source, starts, ends, steps, axes, decrease_axes, none_axes
    )


def set_value_with_tensor(
    call: Add,
    x: Value,
    values: Value,
    starts: Any,
    ends: Any,
    steps: Any,
    axes: Any,
    decrease_axes: Any,
    none_axes: Any,
) -> Value:
    if none_axes:
        raise Refused("it writes with new axes in its index")
    if any(step < 1 for step in steps):
        raise Refused("it writes backwards")
    at = [axis % x.ndim for axis in axes]
    bounds = [_range(x.shape[a], *rest) for a, *rest in zip(at, starts, ends, steps, strict=True)]
    # The parts of x that contain each other: x, its slice along the first axis, and so on.
    parts = [x]
    for axis, (first, last, step) in zip(at, bounds, strict=True):
        parts.append(call("slice", parts[-1], [axis], [first], [max(first, last)], [step]))
    inner = list(parts[-1].shape)
    source = call("cast", values, x.dtype)
    if decrease_axes:  # axes that an index by a number takes away
        gone = {axis % x.ndim for axis in decrease_axes}
        kept = [length for axis, length in enumerate(inner) if axis not in gone]
        while source.ndim > len(kept) and source.shape[0] == 1:
            source = call("squeeze", source, [0])
        source = call("reshape", call("expand", source, kept), inner)
    else:
        while source.ndim > len(inner) and source.shape[0] == 1:
            source = call("squeeze", source, [0])
        source = call("expand", source, inner)
    for axis, (first, last, step), part in reversed(list(zip(at, bounds, parts, strict=False))):
        source = call("slice_scatter", part, source, axis, first, max(first, last), step)
    return source


def pad3d(
    call: Add, x: Value, paddings: Any, mode: str, pad_value: float, data_format: str
) -> Value:
    """Numbers come in pairs, the last spatial axis first."""
    first = 1 if data_format.endswith("C") else 2
    margins = [0] * (2 * x.ndim)
    for index in range(x.ndim - 2):
        axis = first + x.ndim - 3 - index
        margins[2 * axis : 2 * axis + 2] = paddings[2 * index : 2 * index + 2]
    own = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode == "constant":
        return call("pad", x, margins, "constant", pad_value)
    return call("pad", x, margins, own[mode])


# -- products, reductions, scans --------------------------------------------------------------------------


def mul(call: Add, x: Value, y: Value, x_num_col_dims: int, y_num_col_dims: int) -> Value:
    """Of matrices whose rows are the first axes and whose columns are the others."""
    rows, columns = list(x.shape)[:x_num_col_dims], list(y.shape)[y_num_col_dims:]
    left = call("reshape", x, [math.prod(rows), -1])
    right = call("reshape", y, [-1, math.prod(columns)])
    return call("reshape", call("matmul", left, right), [*rows, *columns])


def matmul(call: Add, x: Value, y: Value, transpose_x: bool, transpose_y: bool) -> Value:
    if transpose_x and x.ndim > 1:
        x = call("transpose", x, -2, -1)
    if transpose_y and y.ndim > 1:
        y = call("transpose", y, -2, -1)
    return call("matmul", x, y)


def bilinear(call: Add, x: Value, y: Value, weight: Value, bias: Any) -> Value:
    out = call("einsum", "bi,oij,bj->bo", [x, weight, y])
    return out if bias is None else call("add", out, bias)


def reduce_sum(call: Add, x: Value, axis: Any, dtype: Any, keepdim: bool) -> Value:
    if dtype is not None:
        x = call("cast", x, dtype)
    return call("sum", x, axes_of(axis), keepdim)


def reduce_mean(call: Add, x: Value, axis: Any, keepdim: bool) -> Value:
    return call("mean", x, axes_of(axis), keepdim)


def reduce_max(call: Add, x: Value, axis: Any, keepdim: bool) -> Value:
    return call("max", x, axes_of(axis), keepdim)


def reduce_min(call: Add, x: Value, axis: Any, keepdim: bool) -> Value:
    return call("min", x, axes_of(axis), keepdim)


def reduce_prod(call: Add, x: Value, axis: Any, keepdim: bool, reduce_all: bool) -> Value:
    return call("prod", x, None if reduce_all else axes_of(axis), keepdim)


def reduce_all(call: Add, x: Value, axis: Any, keepdim: bool) -> Value:
    return call("all", x, axes_of(axis), keepdim)


def reduce_any(call: Add, x: Value, axis: Any, keepdim: bool) -> Value:
    return call("any", x, axes_of(axis), keepdim)


def logsumexp(call: Add, x: Value, axis: Any, keepdim: bool, reduce_all: bool) -> Value:
    return call("logsumexp", x, None if reduce_all else axes_of(axis), keepdim)


def frobenius_norm(call: Add, x: Value, axis: Any, keep_dim: bool, reduce_all: bool) -> Value:
    return call("norm", x, 2.0, None if reduce_all else axes_of(axis), keep_dim)


def p_norm(
    call: Add, x: Value, porder: float, axis: int, epsilon: float, keepdim: bool, asvector: bool
) -> Value:
    return call("norm", x, porder, None if asvector else [axis], keepdim)


def _arg(
    call: Add, name: str, x: Value, axis: Any, keepdims: bool, flat: bool, dtype: Any
) -> Value:
    if flat:
        x, axis = call("reshape", x, [-1]), 0
        if keepdims:
            raise Refused("it keeps the axes of what it flattens")
    found = call(name, x, int(number(axis, "axis")), keepdims)
    return found if dtype in (None, "int64") else call("cast", found, dtype)


def argmax(call: Add, x: Value, axis: Any, keepdims: bool, flatten: bool, dtype: Any) -> Value:
    return _arg(call, "argmax", x, axis, keepdims, flatten, dtype)


def argmin(call: Add, x: Value, axis: Any, keepdims: bool, flatten: bool, dtype: Any) -> Value:
    return _arg(call, "argmin", x, axis, keepdims, flatten, dtype)


def argsort(call: Add, x: Value, axis: int, descending: bool, stable: bool) -> list[Value]:
    return list(call("sort_with_indices", x, axis, descending))


def topk(call: Add, x: Value, k: Any, axis: int, largest: bool, sorted: bool) -> list[Value]:
    return list(call("topk", x, int(number(k, "k")), axis, largest))


def cumsum(call: Add, x: Value, axis: Any, flatten: bool, exclusive: bool, reverse: bool) -> Value:
    if exclusive:
        raise Refused("with exclusive=True")
    if flatten:
        return call("cumsum", call("reshape", x, [-1]), 0, reverse)
    return call("cumsum", x, int(number(axis, "axis")), reverse)


# -- indices ----------------------------------------------------------------------------------------------


def gather(call: Add, x: Value, index: Value, axis: Any) -> Value:
    at = int(number(axis, "axis"))
    if index.ndim == 0:
        return call("squeeze", call("index_select", x, call("reshape", index, [1]), at), [at])
    return call("index_select", x, call("reshape", index, [-1]), at)


def scatter(call: Add, x: Value, index: Value, updates: Value, overwrite: bool) -> Value:
    rows = call("reshape", index, [-1])
    if overwrite:
        return call("index_put", x, [rows], updates)
    # Rows that are named start from zero, and what is written there is summed.
    cleared = call("index_put", x, [rows], call("zeros_like", updates))
    return call("index_put", cleared, [rows], updates, accumulate=True)


def put_along_axis(
    call: Add,
    arr: Value,
    indices: Value,
    values: Value,
    axis: int,
    reduce: str,
    include_self: bool,
) -> Value:
    own = {"assign": "assign", "add": "sum", "multiply": "prod", "mul": "prod"}
    own |= {each: each for each in ("mean", "amin", "amax")}
    if reduce not in own:
        raise Refused(f"with reduce={reduce!r}")
    return call(
        "put_along_axis",
        arr,
        indices,
        call("expand", values, list(indices.shape)),
        axis,
        reduce=own[reduce],
        include_self=include_self,
    )


def embedding(call: Add, x: Value, weight: Value, padding_idx: int, sparse: bool) -> Value:
    """The row `padding_idx` is zeros, whatever the table has there."""
    rows = call("embedding", weight, x)
    if padding_idx < 0:
        return rows
    is_word = call("not_equal", call("unsqueeze", x, [-1]), padding_idx)
    return call("where", is_word, rows, 0.0)
