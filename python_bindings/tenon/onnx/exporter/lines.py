# SPDX-License-Identifier: Apache-2.0
"""Lines of the key `onnx` of operators (opdefs/README.md), which import reads, read in the other direction."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from tenon import _core
from tenon.onnx.exporter.program_text import Step, Value
from tenon.onnx.exporter.writer import FLOATING, Refusal, Writer, tensors_of

# What ONNX passes as tensors at the opsets that are written. All other names in lines are attributes.
_INPUTS = {("Squeeze", "axes"), ("Unsqueeze", "axes"), ("Tile", "repeats"), ("AffineGrid", "size")}
# Operators of ONNX that are there from an opset on which is written not always, or whose meaning changed.
FIRST_OPSET = {"Gelu": 20, "AffineGrid": 20, "Attention": 23}
# Operators whose tensors have their own dtypes, and what is converted to bool.
_AS_THEY_ARE = {
    "Gather",
    "GatherElements",
    "Tile",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "AffineGrid",
}
_LOGICAL = {"And", "Or", "Xor", "Not"}
_COMPARISONS = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
_OF_BOOL = {
    "BitwiseAnd": "And",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
    "BitwiseNot": "Not",
    "Mul": "And",
    "Add": "Or",
}
_FLOATS_ALONE = {"Floor", "Ceil", "Round", "IsNaN"}


_PARAMETER = re.compile(r"[(, ][A-Za-z]+(?:\[\])?\?? (\w+)(?=[,=)])")


@dataclass(frozen=True)
class Line:
    op: str
    # The name of our parameter, None for the next one, and what import gives it.
    parameters: tuple[tuple[str | None, ast.expr], ...]
    names: tuple[str, ...]  # of all our parameters, in their order


def find(name: str, opset: int) -> Line | None:
    """The newest line of an operator of ours that holds at `opset` and is an expression."""
    found = None
    names: tuple[str, ...] = ()
    for text in (_core.operator_traits(name) or "").splitlines():
        words = text.split(" ", 4)
        if words[0] != "onnx:" or len(words) < 5 or words[3] != "import":
            continue
        if int(words[2]) > opset or FIRST_OPSET.get(words[1], 1) > opset:
            continue
        schema = _core.operator(name.removeprefix("tenon::")).schema
        names = tuple(_PARAMETER.findall(schema.partition(" -> ")[0]))
        call = ast.parse(words[4], mode="eval").body
        assert isinstance(call, ast.Call)
        listed: list[tuple[str | None, ast.expr]] = [(None, each) for each in call.args]
        listed += [(keyword.arg, keyword.value) for keyword in call.keywords]
        found = Line(words[1], tuple(listed), names)
    return found


def write(line: Line, g: Writer, step: Step) -> str:
    tensors = compute(line, g, step)
    inputs: dict[int, str] = {}
    behind: list[str] = []
    attributes: dict[str, Any] = {}
    used = set()
    for index, (parameter, given) in enumerate(line.parameters):
        operand = step.given(index, parameter or line.names[index])
        used.add(parameter or index)
        match given:
            case ast.Call(args=[ast.Constant(value=int(place))]):
                inputs[place] = tensors(operand)
            case ast.Name(id="inputs"):
                inputs = {i: tensors(each) for i, each in enumerate(operand)}
            case ast.Name(id=attribute) if (line.op, attribute) in _INPUTS:
                if operand is not None:
                    behind.append(g.shape(operand))
            case ast.Name(id=attribute):
                if operand is not None:
                    attributes[attribute] = operand
            case ast.Compare(left=ast.Name(id=attribute), comparators=[ast.Constant(value=text)]):
                if operand:
                    attributes[attribute] = text
            case _:
                raise Refusal(f"its line of {line.op} cannot be turned around")
    names = {parameter for parameter, _ in line.parameters if parameter}
    for name in step.named:
        if names and name not in names:
            raise Refusal(f"{line.op} of ONNX has nothing for `{name}`; use its default")
    op = line.op
    if step.results[0].dtype == "bool" and op in _OF_BOOL:
        op = _OF_BOOL[op]
    if op in _FLOATS_ALONE and tensors_of(step)[0].dtype not in FLOATING:
        if op == "IsNaN":
            zeros = g.node("Sub", *[g.cast(inputs[0], tensors_of(step)[0].dtype, "int32")] * 2)
            return g.cast(zeros, "int32", "bool")
        return g.node("Identity", inputs[0])
    return g.node(op, *(inputs[i] for i in sorted(inputs)), *behind, **attributes)


def compute(line: Line, g: Writer, step: Step) -> Any:
    """A function that gives an operand as a tensor of the dtype that the step computes in."""
    if line.op in _AS_THEY_ARE:
        return g.name
    if line.op in _LOGICAL:
        return lambda operand: g.operand(operand, "bool")
    if line.op == "Where":
        to = step.results[0].dtype
        condition = step.given(0, "condition")
        return lambda operand: g.operand(operand, "bool" if operand is condition else to)
    if line.op in _COMPARISONS:
        to = promoted(step)
        if to == "bool" and line.op != "Equal":
            to = "int32"
        return lambda operand: g.operand(operand, to)
    if step.results[0].dtype == "bool" and line.op not in _OF_BOOL:
        return g.name
    return lambda operand: g.operand(operand, step.results[0].dtype)


def promoted(step: Step) -> str:
    """The dtype in which two operands are compared."""
    import tenon  # inside: the package imports this module

    dtypes = [getattr(tenon, value.dtype) for value in tensors_of(step)]
    numbers = [
        each
        for each in (*step.operands, *step.named.values())
        if isinstance(each, (int, float)) and not isinstance(each, Value)
    ]
    return tenon.result_type(*dtypes, *numbers).name
