# SPDX-License-Identifier: Apache-2.0
"""Sums and other reductions, running sums, and orders."""

from __future__ import annotations

from typing import Any

from tenon.onnx.exporter.converters import exports
from tenon.onnx.exporter.program_text import Step
from tenon.onnx.exporter.writer import FLOATING, Refusal, Writer, axis_of


def _axes(step: Step) -> list[int]:
    value = step.operands[0]
    axes = step.given(1, "axis")
    if isinstance(axes, int):
        axes = [axes]
    return list(range(len(value.shape))) if axes is None else [axis_of(value, a) for a in axes]


def _reduce(g: Writer, step: Step, op: str, x: str, keep: bool) -> str:
    axes = _axes(step)
    if not axes:
        if op == "ReduceL2":
            return g.node("Abs", x)
        return g.node("Identity", x)
    return g.node(op, x, g.constant(axes), keepdims=int(keep))


def _has_empty_axis(step: Step) -> bool:
    return 0 in step.operands[0].shape


@exports("sum", "prod", "mean", "norm2", "max", "min", "logsumexp", "nansum", "count_nonzero")
def _plain(g: Writer, step: Step) -> str:
    name = step.op.removeprefix("tenon::")
    value, made = step.operands[0], step.results[0]
    keep = bool(step.given(2, "keepdim", False))
    op = {
        "sum": "ReduceSum",
        "nansum": "ReduceSum",
        "count_nonzero": "ReduceSum",
        "prod": "ReduceProd",
        "mean": "ReduceMean",
        "norm2": "ReduceL2",
        "max": "ReduceMax",
        "min": "ReduceMin",
        "logsumexp": "ReduceLogSumExp",
    }[name]
    if _has_empty_axis(step) and name != "sum":
        raise Refusal("of no elements, for which libraries differ; leave it out")
    if name == "count_nonzero":
        x = g.cast(g.cast(g.name(value), value.dtype, "bool"), "bool", made.dtype)
    elif made.dtype == "bool":
        x = _reduce(g, step, op, g.cast(g.name(value), "bool", "int32"), keep)
        return g.cast(x, "int32", "bool")
    else:
        x = g.cast(g.name(value), value.dtype, made.dtype)
    if name == "nansum" and made.dtype in FLOATING:
        x = g.node("Where", g.node("IsNaN", x), g.constant(0, made.dtype), x)
    if name == "logsumexp":  # of differences from the maximum, so that no exponential overflows
        axes = _axes(step)
        if not axes:
            return g.node("Identity", x)
        top = g.node("ReduceMax", x, g.constant(axes), keepdims=1)
        finite = g.node("Not", g.node("IsInf", g.cast(top, made.dtype, "float32")))
        top = g.node("Where", finite, top, g.constant(0, made.dtype))
        total = g.node("ReduceSum", g.node("Exp", g.node("Sub", x, top)), g.constant(axes))
        result = g.node("Add", g.node("Log", total), top)
        return result if keep else g.node("Squeeze", result, g.constant(axes))
    return _reduce(g, step, op, x, keep)


@exports("any", "all")
def _logical(g: Writer, step: Step) -> str:
    value = step.operands[0]
    keep = bool(step.given(2, "keepdim", False))
    if _has_empty_axis(step):
        raise Refusal("of no elements, for which libraries differ; leave it out")
    truth = g.cast(g.cast(g.name(value), value.dtype, "bool"), "bool", "int32")
    op = "ReduceMax" if step.op == "tenon::any" else "ReduceMin"
    return g.cast(_reduce(g, step, op, truth, keep), "int32", "bool")


@exports("var")
def _var(g: Writer, step: Step) -> str:
    value, made = step.operands[0], step.results[0]
    axes = _axes(step)
    if not axes or _has_empty_axis(step):
        raise Refusal("of no elements, for which libraries differ; leave it out")
    x = g.cast(g.name(value), value.dtype, made.dtype)
    keep = int(bool(step.given(3, "keepdim", False)))
    away = g.node("Sub", x, g.node("ReduceMean", x, g.constant(axes)))
    total = g.node("ReduceSum", g.node("Mul", away, away), g.constant(axes), keepdims=keep)
    count = g.cast(g.numel(value, axes), "int64", made.dtype)
    correction = float(step.given(2, "correction", 0.0))
    divisor = g.node("Sub", count, g.constant(correction, made.dtype))
    return g.node("Div", total, g.node("Max", divisor, g.constant(0, made.dtype)))


@exports("argmax", "argmin")
def _extreme_index(g: Writer, step: Step) -> str:
    value = step.operands[0]
    if value.dtype == "bool":
        raise Refusal("of bool; cast to int32")
    op = "ArgMax" if step.op == "tenon::argmax" else "ArgMin"
    axis, keep = step.given(1, "axis"), bool(step.given(2, "keepdim", False))
    if axis is None:
        flat = g.node(op, g.reshape(g.name(value), [-1]), axis=0, keepdims=0)
        return g.reshape(flat, step.results[0].shape) if keep else flat
    if not value.shape:
        raise Refusal("of a tensor without axes; leave it out")
    return g.node(op, g.name(value), axis=axis_of(value, axis), keepdims=int(keep))


@exports("softmax", "log_softmax")
def _softmax(g: Writer, step: Step) -> str:
    value, made = step.operands[0], step.results[0]
    if not value.shape:
        raise Refusal("of a tensor without axes; reshape it to [1]")
    x = g.cast(g.name(value), value.dtype, made.dtype)
    op = "Softmax" if step.op == "tenon::softmax" else "LogSoftmax"
    return g.node(op, x, axis=axis_of(value, step.given(1, "axis", -1)))


@exports("cumsum")
def _cumsum(g: Writer, step: Step) -> str:
    value, made = step.operands[0], step.results[0]
    if not value.shape:
        raise Refusal("of a tensor without axes; reshape it to [1]")
    x = g.cast(g.name(value), value.dtype, made.dtype)
    axis = g.constant(axis_of(value, step.given(1, "axis", -1)))
    return g.node("CumSum", x, axis, reverse=int(bool(step.given(2, "reverse", False))))


@exports("sort", "sort_with_indices", "argsort", "topk")
def _sort(g: Writer, step: Step) -> Any:
    value = step.operands[0]
    is_top = step.op == "tenon::topk"
    if not value.shape or value.dtype == "bool":
        raise Refusal("of a tensor without axes or of bool; cast and reshape it")
    axis = axis_of(value, step.given(2 if is_top else 1, "axis", -1))
    falls = step.given(3, "largest", True) if is_top else step.given(2, "descending", False)
    if is_top:
        count = g.size(step.given(1, "count"))
    else:
        size = value.shape[axis]
        count = (
            g.node("Shape", g.name(value), start=axis, end=axis + 1)
            if size is None
            else g.size(size)
        )
    both = g.node("TopK", g.name(value), count, count=2, axis=axis, largest=int(bool(falls)))
    if step.op == "tenon::sort":
        return both[0]
    return both[1] if step.op == "tenon::argsort" else both
