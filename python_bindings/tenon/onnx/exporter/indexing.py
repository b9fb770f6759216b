# SPDX-License-Identifier: Apache-2.0
"""Operators that read and write by index."""

from __future__ import annotations

from typing import Any

from tenon.onnx.exporter.converters import exports
from tenon.onnx.exporter.program_text import Step, Value
from tenon.onnx.exporter.writer import Refusal, Writer, axis_of


def _index(g: Writer, value: Value) -> str:
    """ONNX takes indices of int32 and int64."""
    if value.dtype == "bool":
        raise Refusal("by a mask, whose number of elements depends on data; use tenon.where")
    return g.operand(value, value.dtype if value.dtype == "int32" else "int64")


@exports("index_select")
def _index_select(g: Writer, step: Step) -> str:
    value = step.operands[0]
    if not value.shape:
        raise Refusal("of a tensor without axes; reshape it to [1]")
    axis = axis_of(value, step.given(2, "axis", 0))
    return g.node("Gather", g.name(value), _index(g, step.operands[1]), axis=axis)


@exports("embedding")
def _embedding(g: Writer, step: Step) -> str:
    weight, indices = step.operands[:2]
    return g.node("Gather", g.name(weight), _index(g, indices), axis=0)


@exports("gather")
def _gather(g: Writer, step: Step) -> str:
    value, index = step.operands[:2]
    if not value.shape:
        raise Refusal("of a tensor without axes; reshape it to [1]")
    axis = axis_of(value, step.given(2, "axis", -1))
    return g.node("GatherElements", g.name(value), _index(g, index), axis=axis)


@exports("scatter", "scatter_add")
def _scatter(g: Writer, step: Step) -> str:
    value, index, source = (step.given(i, n) for i, n in enumerate(("x", "index", "source")))
    if not value.shape:
        raise Refusal("of a tensor without axes; reshape it to [1]")
    axis = axis_of(value, step.given(3, "axis", -1))
    written = g.operand(source, value.dtype)
    if not isinstance(source, Value):
        written = g.node("Expand", written, g.shape(index.shape))
    elif tuple(index.shape) != tuple(source.shape):
        raise Refusal("of indices in another shape than what is written; make them the same")
    reduction: dict[str, Any] = {"reduction": "add"} if step.op == "tenon::scatter_add" else {}
    return g.node(
        "ScatterElements",
        g.name(value),
        _index(g, index),
        written,
        axis=axis,
        **reduction,
    )


@exports("index", "index_put")
def _index_at(g: Writer, step: Step) -> str:
    """Of index tensors that broadcast: tuples of them along a new last axis are GatherND's and ScatterND's."""
    value = step.operands[0]
    indices = step.operands[1]
    axis = axis_of(value, step.given(2 if step.op == "tenon::index" else 3, "axis", 0))
    if not indices or axis:
        raise Refusal("of another axis than the first; use tenon.index_select or movedim")
    names = [_index(g, each) for each in indices]
    names = [
        g.cast(n, "int32", "int64") if each.dtype == "int32" else n
        for n, each in zip(names, indices, strict=True)
    ]
    total = names[0]
    for name in names[1:]:
        total = g.node("Add", total, name)
    shape = g.node("Shape", total)
    parts = [g.node("Unsqueeze", g.node("Expand", n, shape), g.constant([-1])) for n in names]
    tuples = g.node("Concat", *parts, axis=-1) if len(parts) > 1 else parts[0]
    if step.op == "tenon::index":
        return g.node("GatherND", g.name(value), tuples)
    source = g.operand(step.given(2, "value"), value.dtype)
    rest = g.node("Shape", g.name(value), start=len(indices))
    source = g.node("Expand", source, g.node("Concat", shape, rest, axis=0))
    reduction: dict[str, Any] = {"reduction": "add"} if step.given(4, "accumulate", False) else {}
    return g.node("ScatterND", g.name(value), tuples, source, **reduction)


@exports("index_add")
def _index_add(g: Writer, step: Step) -> str:
    value, index, source = (step.given(i, n) for i, n in enumerate(("x", "index", "source")))
    axis = axis_of(value, step.given(3, "axis", 0)) if value.shape else 0
    if axis or len(index.shape) != 1:
        raise Refusal("of another axis than the first; use tenon.movedim")
    tuples = g.node("Unsqueeze", g.operand(index, "int64"), g.constant([-1]))
    source_name = g.operand(source, value.dtype)
    return g.node("ScatterND", g.name(value), tuples, source_name, reduction="add")


@exports("segment_add")
def _segment_add(g: Writer, step: Step) -> str:
    rows, index = step.operands[:2]
    made = step.results[0]
    zeros = g.node("Expand", g.constant(0, made.dtype), g.shape(made.shape))
    at = g.node("Unsqueeze", g.operand(index, "int64"), g.constant([-1]))
    return g.node("ScatterND", zeros, at, g.name(rows), reduction="add")
