# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of a program as If, Loop and Scan, whose graphs see the values around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenon.onnx.exporter import messages
from tenon.onnx.exporter.program_text import ProgramText, Size, Step, Value
from tenon.onnx.exporter.writer import Writer

# Writes the steps of a region, whose inputs have names.
WriteBody = Callable[[Writer, ProgramText], None]
KINDS = ("cond", "while", "scan")


def write(g: Writer, step: Step, write_body: WriteBody) -> list[str]:
    """The names of the step's results."""
    return {"cond": _cond, "while": _while, "scan": _scan}[step.op](g, step, write_body)


def _cond(g: Writer, step: Step, write_body: WriteBody) -> list[str]:
    predicate, *operands = step.operands
    branches = {}
    for name, region in zip(("then_branch", "else_branch"), step.regions, strict=True):
        inner = g.inner([g.name(each) for each in operands], region.inputs)
        write_body(inner, region)
        names = [inner.name(value) for value in region.results]
        branches[name] = _graph(inner, name, [], names, region.results)
    outputs = _fresh(g, step)
    g.add("If", [g.operand(predicate, "bool")], outputs, branches)
    return outputs


def _while(g: Writer, step: Step, write_body: WriteBody) -> list[str]:
    condition, body = step.regions
    count = step.named["carried"]
    names = [g.name(each) for each in step.operands]
    begins = _truth(g, condition, names, write_body)
    carried = [g.fresh(f"carried_{i}") for i in range(count)]
    inner = g.inner([*carried, *names[count:]], body.inputs)
    write_body(inner, body)
    made = [inner.name(value) for value in body.results]
    goes_on = _truth(inner, condition, [*made, *names[count:]], write_body)
    inputs = [
        messages.value_info(g.fresh("iteration"), "int64", []),
        messages.value_info(g.fresh("condition"), "bool", []),
        *_types(carried, body.inputs),
    ]
    truth = Value("", "bool", ())
    graph = _graph(inner, "body", inputs, [goes_on, *made], [truth, *body.results])
    outputs = _fresh(g, step)
    g.add("Loop", ["", begins, *names[:count]], outputs, {"body": graph})
    return outputs


def _scan(g: Writer, step: Step, write_body: WriteBody) -> list[str]:
    (body,) = step.regions
    count = step.named["carried"] + step.named["scanned"]
    names = [g.name(each) for each in step.operands]
    own = [g.fresh(f"element_{i}") for i in range(count)]
    inner = g.inner([*own, *names[count:]], body.inputs)
    write_body(inner, body)
    made = [inner.name(value) for value in body.results]
    graph = _graph(inner, "body", _types(own, body.inputs), made, body.results)
    outputs = _fresh(g, step)
    attributes = {"body": graph, "num_scan_inputs": step.named["scanned"]}
    g.add("Scan", names[:count], outputs, attributes)
    return outputs


def _truth(g: Writer, condition: ProgramText, names: Sequence[str], write_body: WriteBody) -> str:
    """Whether a loop goes on, as nodes of `g`: a bool without axes."""
    with g.naming(names, condition.inputs):
        write_body(g, condition)
        (result,) = condition.results
        name = g.name(result)
    return g.node("Reshape", name, g.constant([])) if result.shape else name


def _fresh(g: Writer, step: Step) -> list[str]:
    return [g.fresh(f"{step.op}_{i}") for i in range(len(step.results))]


def _types(names: Sequence[str], values: Sequence[Value]) -> list[bytes]:
    return [
        messages.value_info(name, value.dtype, [_size(size) for size in value.shape])
        for name, value in zip(names, values, strict=False)
    ]


def _size(size: object) -> int | str | None:
    return size.text if isinstance(size, Size) else size if isinstance(size, int) else None


def _graph(
    inner: Writer,
    name: str,
    inputs: Sequence[bytes],
    made: Sequence[str],
    results: Sequence[Value],
) -> messages.Graph:
    """A graph whose results are nodes of its own: a value from around it, or one of its inputs, is none."""
    names = [inner.fresh(f"{name}.{i}") for i in range(len(made))]
    for source, target in zip(made, names, strict=True):
        inner.add("Identity", [source], [target], {})
    outputs = _types(names, results)
    return messages.Graph(messages.graph(name, inner.nodes, inputs, outputs))
