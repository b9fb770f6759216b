# SPDX-License-Identifier: Apache-2.0
"""A graph of ONNX that is put together node by node. Values are their names."""

from __future__ import annotations

import ast
import struct
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tenon.onnx.exporter import messages
from tenon.onnx.exporter.program_text import Size, Step, Value

_CODES = {
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "bool": "?",
}
FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64")


class Refusal(Exception):
    """Why a step has no form in ONNX, and what to do."""


def fixed(sizes: Iterable[Any], what: str) -> list[int]:
    """Sizes that ONNX takes as an attribute, which holds numbers alone."""
    listed = list(sizes)
    for size in listed:
        if not isinstance(size, int):
            text = size.text if isinstance(size, Size) else "a size that nothing says"
            raise Refusal(f"its {what} is {text}, and has to be a number; export without that Dim")
    return listed


class Writer:
    """`outer`: of the graph around this one, whose names are seen here, and whose constants are everyone's."""

    def __init__(self, opset: int, outer: Writer | None = None) -> None:
        self.opset = opset
        self.nodes: list[bytes] = []
        self.initializers: list[bytes] = outer.initializers if outer else []
        self.origin: str = (
            outer.origin if outer else ""
        )  # of the nodes to come: the operator of ours
        self.names: dict[str, str] = {}  # by the id of a value of ours
        self._taken: set[str] = outer._taken if outer else set()
        self._constants: dict[tuple[Any, ...], str] = outer._constants if outer else {}
        # What nodes make is seen in the graphs of later nodes, and not the other way around.
        self._casts: ChainMap[tuple[str, str], str] = ChainMap(
            {}, *(outer._casts.maps if outer else ())
        )
        self._sizes: ChainMap[str, str] = ChainMap({}, *(outer._sizes.maps if outer else ()))
        self._sites: dict[str, tuple[str, int]] = (
            outer._sites if outer else {}
        )  # where an input shows a dimension

    def inner(self, names: Iterable[str], values: Iterable[Value]) -> Writer:
        """Of a graph in a node to come; `values`, a region's inputs, have these names there."""
        made = Writer(self.opset, self)
        made.names = {value.id: name for value, name in zip(values, names, strict=True)}
        return made

    @contextmanager
    def naming(self, names: Iterable[str], values: Iterable[Value]) -> Iterator[None]:
        """A region's steps are written here inside the block: its inputs have these names."""
        outer = self.names
        self.names = {value.id: name for value, name in zip(values, names, strict=True)}
        try:
            yield
        finally:
            self.names = outer

    def fresh(self, wanted: str) -> str:
        """`wanted`, or that with a number behind it."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def open_sizes(self, name: str, shape: Sequence[Any]) -> None:
        for axis, size in enumerate(shape):
            if isinstance(size, Size) and size.text.isidentifier():
                self._sites.setdefault(size.text, (name, axis))

    def name(self, value: Value) -> str:
        return self.names[value.id]

    def node(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """The name of its result, or a list of `count` names."""
        outputs = [self.fresh(f"{self.origin}.{op.lower()}") for _ in range(count)]
        self.add(op, inputs, outputs, attributes)
        return outputs[0] if count == 1 else outputs

    def add(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: dict[str, Any]
    ) -> None:
        used = list(inputs)
        while used and not used[-1]:  # optional ones that are absent at the end
            used.pop()
        name = f"{outputs[0]}.node"
        self.nodes.append(messages.node(op, used, outputs, name, attributes))

    def constant(self, numbers: Any, dtype: str = "int64") -> str:
        """A number, or a list of them, of this dtype."""
        items = list(numbers) if isinstance(numbers, (list, tuple)) else [numbers]
        shape = [len(items)] if isinstance(numbers, (list, tuple)) else []
        key = (repr(items), dtype, len(shape))
        if key not in self._constants:
            if dtype == "bfloat16":
                return self.cast(self.constant(numbers, "float32"), "float32", dtype)
            if dtype not in _CODES:
                raise Refusal(f"ONNX has no constants of {dtype}; cast to float32")
            name = self.fresh("constant")
            kind = float if dtype in FLOATING else bool if dtype == "bool" else int
            data = b"".join(_packed(kind(item), dtype) for item in items)
            self.initializers.append(messages.tensor(name, dtype, shape, data))
            self._constants[key] = name
        return self._constants[key]

    def cast(self, name: str, dtype: str, to: str) -> str:
        if dtype == to:
            return name
        if to not in messages.ELEMENT_TYPES:
            raise Refusal(f"ONNX has no {to}; cast to float32")
        if (name, to) not in self._casts:
            self._casts[name, to] = self.node("Cast", name, to=messages.ELEMENT_TYPES[to])
        return self._casts[name, to]

    def operand(self, operand: Any, dtype: str) -> str:
        """A tensor, or a number in the place of one, as this dtype."""
        if isinstance(operand, Value):
            return self.cast(self.name(operand), operand.dtype, dtype)
        if isinstance(operand, Size):
            size = self.node("Squeeze", self.size(operand))
            return self.cast(size, "int64", dtype)
        if operand is None or isinstance(operand, (list, complex, str)):
            raise Refusal(f"expected a tensor or a number, got {operand!r}; pass a tensor")
        return self.constant(operand, dtype)

    def size(self, size: Any) -> str:
        """A size as an int64 tensor of one element."""
        if isinstance(size, int):
            return self.constant([size])
        if not isinstance(size, Size):
            raise Refusal(
                "a size follows from no Dim in a way that is known; export for fixed sizes"
            )
        if size.text not in self._sizes:
            self._sizes[size.text] = self._expression(ast.parse(size.text, mode="eval").body)
        return self._sizes[size.text]

    def _expression(self, tree: ast.expr) -> str:
        match tree:
            case ast.Constant(value=int(number)):
                return self.constant([number])
            case ast.Name(id=name) if name in self._sites:
                source, axis = self._sites[name]
                key = f"size.{name}"
                if key not in self._sizes:
                    self._sizes[key] = self.node("Shape", source, start=axis, end=axis + 1)
                return self._sizes[key]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.node("Neg", self._expression(operand))
            case ast.BinOp(left=left, op=op, right=right):
                names = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div"}
                if type(op) in names:
                    return self.node(
                        names[type(op)], self._expression(left), self._expression(right)
                    )
        raise Refusal(f"the size {ast.unparse(tree)} is that of no input; export for fixed sizes")

    def shape(self, sizes: Sequence[Any]) -> str:
        """Sizes as an int64 tensor of one axis."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(list(sizes))
        return self.node("Concat", *(self.size(size) for size in sizes), axis=0)

    def reshape(self, name: str, sizes: Sequence[Any]) -> str:
        open_axes = [i for i, size in enumerate(sizes) if not isinstance(size, int)]
        if 0 in sizes:
            return self.node("Reshape", name, self.shape(sizes), allowzero=1)
        if len(open_axes) == 1:  # it follows from the others
            sizes = [-1 if i == open_axes[0] else size for i, size in enumerate(sizes)]
        return self.node("Reshape", name, self.shape(sizes))

    def numel(self, value: Value, axes: Sequence[int]) -> str:
        """How many elements the axes have, as an int64 tensor without axes."""
        sizes = [value.shape[axis] for axis in axes]
        if all(isinstance(size, int) for size in sizes):
            total = 1
            for size in sizes:
                total *= size
            return self.constant(total)
        taken = self.node("Gather", self.node("Shape", self.name(value)), self.constant(list(axes)))
        return self.node("ReduceProd", taken, keepdims=0)


def _packed(number: Any, dtype: str) -> bytes:
    if dtype in ("float16", "float32"):
        try:
            return struct.pack("<" + _CODES[dtype], number)
        except OverflowError:
            return struct.pack("<" + _CODES[dtype], float("inf") if number > 0 else float("-inf"))
    try:
        return struct.pack("<" + _CODES[dtype], number)
    except struct.error:
        raise Refusal(f"{number} is no number of {dtype}; cast the tensor first") from None


def axis_of(value: Value, axis: int) -> int:
    return axis + len(value.shape) if axis < 0 else axis


def tensors_of(step: Step) -> list[Value]:
    found = []
    step.read |= set(step.named)
    for operand in (*step.operands, *step.named.values()):
        found += [
            each
            for each in (operand if isinstance(operand, list) else [operand])
            if isinstance(each, Value)
        ]
    return found
