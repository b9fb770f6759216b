# SPDX-License-Identifier: Apache-2.0
"""Operators that make, move and cut tensors."""

from __future__ import annotations

from typing import Any

from tenon.onnx.exporter.converters import exports
from tenon.onnx.exporter.program_text import Step, Value
from tenon.onnx.exporter.writer import Refusal, Writer, axis_of, fixed

_END = 2**63 - 1  # beyond every axis: Slice stops at its end


@exports("view", "reshape", "flatten", "unflatten", "channel_view")
def _view(g: Writer, step: Step) -> str:
    value, made = step.operands[0], step.results[0]
    if any(size is None for size in made.shape):
        raise Refusal("a size follows from no Dim in a way that is known; export for fixed sizes")
    return g.reshape(g.name(value), made.shape)


@exports("expand")
def _expand(g: Writer, step: Step) -> str:
    shape = step.results[0].shape
    if any(size is None for size in shape):
        raise Refusal("a size follows from no Dim in a way that is known; export for fixed sizes")
    return g.node("Expand", g.name(step.operands[0]), g.shape(shape))


@exports("transpose")
def _transpose(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axes = list(range(len(value.shape)))
    if axes:
        a, b = (axis_of(value, step.given(i + 1, f"axis{i}", i - 2)) for i in range(2))
        axes[a], axes[b] = axes[b], axes[a]
    return g.node("Transpose", g.name(value), perm=axes)


@exports("permute")
def _permute(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axes = step.given(1, "axes")
    axes = [axis_of(value, a) for a in (range(len(value.shape))[::-1] if axes is None else axes)]
    return (
        g.node("Transpose", g.name(value), perm=axes) if axes else g.node("Identity", g.name(value))
    )


@exports("movedim")
def _movedim(g: Writer, step: Step) -> str:
    value = step.operands[0]
    source = [axis_of(value, axis) for axis in step.given(1, "source")]
    destination = [axis_of(value, axis) for axis in step.given(2, "destination")]
    rest = iter(axis for axis in range(len(value.shape)) if axis not in source)
    moved = dict(zip(destination, source, strict=True))
    perm = [moved[i] if i in moved else next(rest) for i in range(len(value.shape))]
    return g.node("Transpose", g.name(value), perm=perm)


@exports("squeeze")
def _squeeze(g: Writer, step: Step) -> str:
    """The result's shape says which axes are left, also where the sizes of others are open."""
    value = step.operands[0]
    axes = step.given(1, "axis")
    if axes is None:
        if any(not isinstance(size, int) for size in value.shape):
            raise Refusal("of all axes of size 1, and some sizes are open; name the axes")
        axes = [i for i, size in enumerate(value.shape) if size == 1]
    axes = [axis_of(value, axis) for axis in axes]
    axes = [axis for axis in axes if value.shape[axis] == 1]
    if not axes:
        return g.node("Identity", g.name(value))
    return g.node("Squeeze", g.name(value), g.constant(axes))


@exports("narrow")
def _narrow(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axis = axis_of(value, step.given(1, "axis"))
    start = step.given(2, "start")
    length = step.given(3, "length")
    if isinstance(start, int) and isinstance(length, int):
        start += value.shape[axis] if start < 0 and isinstance(value.shape[axis], int) else 0
        stop = g.constant([start + length])
    else:
        stop = g.node("Add", g.size(start), g.size(length))
    return g.node("Slice", g.name(value), g.size(start), stop, g.constant([axis]))


@exports("slice")
def _slice(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axes = [axis_of(value, axis) for axis in step.given(1, "axes")]
    starts, stops = step.given(2, "starts"), step.given(3, "stops")
    steps = step.given(4, "steps") or [1] * len(axes)
    if any(not isinstance(each, int) or each < 0 for each in steps):
        raise Refusal("of negative steps; use tenon.flip")
    return g.node(
        "Slice", g.name(value), g.shape(starts), g.shape(stops), g.constant(axes), g.shape(steps)
    )


@exports("select")
def _select(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axis = axis_of(value, step.given(1, "axis"))
    index = step.given(2, "index")
    where = g.constant(index) if isinstance(index, int) else g.node("Squeeze", g.size(index))
    return g.node("Gather", g.name(value), where, axis=axis)


@exports("concat", "stack")
def _concat(g: Writer, step: Step) -> str:
    made = step.results[0]
    axis = axis_of(made, step.given(1, "axis", 0))
    parts = [g.operand(each, made.dtype) for each in step.operands[0]]
    if step.op == "tenon::stack":
        parts = [g.node("Unsqueeze", part, g.constant([axis])) for part in parts]
    return g.node("Concat", *parts, axis=axis)


@exports("flip")
def _flip(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axes = step.given(1, "axis")
    listed = range(len(value.shape)) if axes is None else axes
    axes = [axis_of(value, axis) for axis in listed]
    if not axes:
        return g.node("Identity", g.name(value))
    starts, ends, steps = ([each] * len(axes) for each in (-1, -_END - 1, -1))
    return g.node(
        "Slice", g.name(value), *(g.constant(each) for each in (starts, ends, axes, steps))
    )


@exports("tile")
def _tile(g: Writer, step: Step) -> str:
    value = step.operands[0]
    repeats = list(step.given(1, "repeats"))
    name, ndim = g.name(value), len(value.shape)
    if len(repeats) > ndim:
        name = g.node("Unsqueeze", name, g.constant(list(range(len(repeats) - ndim))))
    repeats = [1] * (ndim - len(repeats)) + repeats
    return g.node("Tile", name, g.shape(repeats)) if repeats else g.node("Identity", name)


@exports("pad_constant")
def _pad(g: Writer, step: Step) -> str:
    value = step.operands[0]
    pads = list(step.given(1, "padding"))  # of each axis those before and behind it
    fill = g.constant(step.given(2, "value", 0), value.dtype)
    return g.node("Pad", g.name(value), g.shape([*pads[0::2], *pads[1::2]]), fill)


@exports("full")
def _full(g: Writer, step: Step) -> str:
    made = step.results[0]
    number = step.given(1, "value")
    if isinstance(number, complex):
        raise Refusal("ONNX has no operators of complex tensors; compute with both parts")
    return g.node("Expand", g.constant(number, made.dtype), g.shape(made.shape))


@exports("arange")
def _arange(g: Writer, step: Step) -> str:
    made = step.results[0]
    start, stop, by = step.given(0, "start"), step.given(1, "stop"), step.given(2, "step", 1)
    if stop is None:
        start, stop = 0, start
    if made.dtype not in ("float32", "float64", "int16", "int32", "int64"):
        raise Refusal(f"of {made.dtype}; make it as int64 and cast it")
    counted = [g.operand(each, made.dtype) for each in (start, stop, by)]
    count = made.shape[0]
    if made.dtype.startswith("float") and isinstance(count, int):
        # The count is known; a sum of steps could be one more.
        numbers = g.node("Range", *(g.constant(each) for each in (0, count, 1)))
        scaled = g.node("Mul", g.cast(numbers, "int64", made.dtype), counted[2])
        return g.node("Add", scaled, counted[0])
    return g.node("Range", *counted)


@exports("eye")
def _eye(g: Writer, step: Step) -> str:
    made = step.results[0]
    shape = fixed(made.shape, "size")
    zeros = g.node("Expand", g.constant(0, made.dtype), g.constant(shape))
    return g.node("EyeLike", zeros, k=int(step.given(2, "offset", 0)))


@exports("diagonal")
def _diagonal(g: Writer, step: Step) -> str:
    value, made = step.operands[0], step.results[0]
    a, b = (axis_of(value, step.given(2 + i, f"axis{i}", i)) for i in range(2))
    offset = step.given(1, "offset", 0)
    count = fixed(made.shape[-1:], "length")[0]
    rest = [axis for axis in range(len(value.shape)) if axis not in (a, b)]
    last = g.node("Transpose", g.name(value), perm=[a, b, *rest])
    rows, columns = max(0, -offset), max(0, offset)
    if count == 0:
        raise Refusal("of a diagonal without elements; leave it out")
    numbers = [number for i in range(count) for number in (rows + i, columns + i)]
    taken = g.node("GatherND", last, g.reshape(g.constant(numbers), [count, 2]))
    return g.node("Transpose", taken, perm=[*range(1, len(rest) + 1), 0])


@exports("as_strided", "view_dtype")
def _refused(g: Writer, step: Step) -> Any:
    raise Refusal("ONNX has no view of a tensor's bytes; use tenon.reshape, permute and slices")


@exports("roll")
def _roll(g: Writer, step: Step) -> str:
    value = step.operands[0]
    axes = step.given(2, "axis")
    shifts = step.given(1, "shift")
    name = g.name(value)
    if axes is None:
        name, axes = g.reshape(name, [-1]), [0]
        sizes = [None]
    else:
        axes = [axis_of(value, axis) for axis in axes]
        sizes = [value.shape[axis] for axis in axes]
    for axis, shift, size in zip(axes, shifts, sizes, strict=True):
        if isinstance(size, int) and size:
            shift %= size
        elif shift < 0 or size is None:
            raise Refusal("by a shift of an axis whose size is open; export for fixed sizes")
        if shift:
            at = g.constant([axis])
            back = g.node("Slice", name, g.constant([-shift]), g.constant([_END]), at)
            front = g.node("Slice", name, g.constant([0]), g.constant([-shift]), at)
            name = g.node("Concat", back, front, axis=axis)
    return (
        g.reshape(name, value.shape) if step.given(2, "axis") is None else g.node("Identity", name)
    )


def at_last_axis(g: Writer, value: Value, axis: int) -> tuple[str, list[int]]:
    """The tensor with an axis moved to the end, and the order of axes that takes it back."""
    order = [i for i in range(len(value.shape)) if i != axis] + [axis]
    back = [order.index(i) for i in range(len(order))]
    return g.node("Transpose", g.name(value), perm=order), back
