# SPDX-License-Identifier: Apache-2.0
"""Reader of Paddle 2's `.pdmodel` files, which hold a ProgramDesc as a protocol buffer. The numbers of its fields stand beside
the code that reads them; they never change."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tenon.onnx import protobuf
from tenon.paddle import _legacy
from tenon.paddle._blocks import (
    MOST_AXES,
    MOST_VALUES,
    Block,
    Input,
    Key,
    Operator,
    SavedModel,
    ValueType,
)

_FEED, _FETCH = 9, 10  # kinds of variables
_MOST_DEEP: Final = 32  # blocks in blocks


@dataclass
class _Variable:
    name: str
    kind: int
    type: ValueType | None
    is_persistable: bool


@dataclass
class Call:
    """An operator as the file says it: names of variables by slot."""

    kind: str = ""
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Block:
    variables: dict[str, _Variable] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


def read(data: bytes, name: str) -> SavedModel:
    """ValueError: it is none."""
    try:
        return _Reader(name).model(data)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(name) else f"{name}: {text}") from None
    except (KeyError, TypeError, IndexError, AttributeError, struct.error, RecursionError) as error:
        raise ValueError(
            f"{name}: expected a ProgramDesc, found a part that is none: {error!r}"
        ) from None


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._blocks: list[_Block] = []

    def model(self, data: bytes) -> SavedModel:
        blocks = [self._read_block(each) for each in _messages(data, 1)]
        if not blocks or not blocks[0].calls:
            raise ValueError(f"{self._name}: expected a ProgramDesc with operators, found none")
        self._blocks = blocks
        inputs: list[tuple[int, Input]] = []
        outputs: list[tuple[int, str, Key]] = []
        calls: list[Call] = []
        for call in blocks[0].calls:
            if call.kind == "feed":
                (key,) = call.outputs["Out"]
                column = int(call.attributes.get("col", 0))
                inputs.append((column, Input(key, self._type_of(key), key)))
            elif call.kind == "fetch":
                (key,) = call.inputs["X"]
                outputs.append((int(call.attributes.get("col", 0)), key, key))
            else:
                calls.append(call)
        parameters = [
            Input(each.name, self._type_of(each.name), each.name)
            for each in sorted(blocks[0].variables.values(), key=lambda each: each.name.encode())
            if each.is_persistable and each.kind not in (_FEED, _FETCH) and each.type is not None
        ]
        body = Block(operators=list(self._operators(calls, 0)))
        return SavedModel(
            self._name,
            body,
            [each for _, each in sorted(inputs, key=lambda each: each[0])],
            [(name, key) for _, name, key in sorted(outputs, key=lambda each: each[0])],
            parameters,
        )

    def _type_of(self, name: str) -> ValueType:
        found = self._find(name)
        if found is None or found.shape is None:
            raise ValueError(f"{self._name}: expected a tensor as variable {name!r}")
        return found

    def _find(self, name: str) -> ValueType | None:
        for block in self._blocks:
            if name in block.variables:
                return block.variables[name].type
        return None

    def _operators(self, calls: list[Call], depth: int) -> Iterator[Operator]:
        if depth > _MOST_DEEP:
            raise ValueError(f"{self._name}: expected blocks at most {_MOST_DEEP} deep in others")
        for call in calls:
            index = call.attributes.pop("sub_block", None)
            body = None
            if index is not None:
                if not 0 < index < len(self._blocks):
                    raise ValueError(f"{self._name}: expected the number of a block, got {index}")
                body = Block(operators=list(self._operators(self._blocks[index].calls, depth + 1)))
            operator = _legacy.operator(call, body)
            operator.types = [self._find(str(key)) for key in operator.results]
            yield operator

    def _counted(self) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise ValueError(
                f"{self._name}: expected at most {MOST_VALUES} operators and variables"
            )

    def _read_block(self, message: memoryview) -> _Block:
        block = _Block()
        for tag, value in protobuf.fields(message):
            if tag == 3:
                self._counted()
                variable = self._read_variable(_bytes(value))
                block.variables[variable.name] = variable
            elif tag == 4:
                block.calls.append(self._read_call(_bytes(value)))
        return block

    def _read_variable(self, message: memoryview) -> _Variable:
        variable = _Variable("", -1, None, False)
        for tag, value in protobuf.fields(message):
            if tag == 1:
                variable.name = protobuf.text(value)
            elif tag == 2:
                for inner, each in protobuf.fields(_bytes(value)):
                    if inner == 1:
                        variable.kind = int(each)
                    elif inner == 3:  # a tensor, with its levels of sequences
                        for part, tensor in protobuf.fields(_bytes(each)):
                            if part == 1:
                                variable.type = tensor_type(_bytes(tensor), self._name)
            elif tag == 3:
                variable.is_persistable = bool(value)
        return variable

    def _read_call(self, message: memoryview) -> Call:
        self._counted()
        call = Call()
        for tag, value in protobuf.fields(message):
            if tag == 3:
                call.kind = protobuf.text(value)
            elif tag in (1, 2):
                slot, names = "", []
                for inner, each in protobuf.fields(_bytes(value)):
                    if inner == 1:
                        slot = protobuf.text(each)
                    elif inner == 2:
                        self._counted()
                        names.append(protobuf.text(each))
                (call.inputs if tag == 1 else call.outputs)[slot] = names
            elif tag == 4:
                name, found = _attribute(_bytes(value))
                call.attributes[name] = found
        return call


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError(f"expected bytes of a message, got the number {value}")
    return value


def _messages(data: bytes, tag: int) -> Iterator[memoryview]:
    for found, value in protobuf.fields(data):
        if found == tag:
            yield _bytes(value)


def tensor_type(message: memoryview, name: str) -> ValueType:
    """Of a TensorDesc, which stands in files of weights as well."""
    dtype = -1
    shape: list[int] = []
    for tag, value in protobuf.fields(message):
        if tag == 1:
            dtype = int(value)  # type: ignore[arg-type]
        elif tag == 2:
            shape += protobuf.integers(value)
    if dtype not in _legacy.DTYPES:
        raise ValueError(
            f"{name}: expected one of the dtypes {', '.join(_legacy.DTYPES.values())}, got number {dtype}"
        )
    if len(shape) > MOST_AXES:
        raise ValueError(f"{name}: expected at most {MOST_AXES} axes, got {len(shape)}")
    return ValueType(_legacy.DTYPES[dtype], tuple(max(size, -1) for size in shape))


def _float(value: Any) -> float:
    return float(struct.unpack("<f", value)[0])


def _double(value: Any) -> float:
    return float(struct.unpack("<d", value)[0])


def _floats(value: memoryview, code: str) -> list[float]:
    """Of a repeated field, packed or not."""
    size = struct.calcsize(code)
    return [each[0] for each in struct.iter_unpack(f"<{code}", value[: len(value) // size * size])]


def _scalar(message: memoryview) -> Any:
    values = dict(protobuf.fields(message))
    kind = values.get(1, 0)
    if kind == 1:
        return bool(values.get(2, 0))
    if kind == 2:
        return protobuf.integers(values.get(3, 0))[0]
    return _double(values[4]) if 4 in values else 0.0


def _attribute(message: memoryview) -> tuple[str, Any]:
    name, kind = "", -1
    values: dict[int, list[Any]] = defaultdict(list)
    for tag, value in protobuf.fields(message):
        if tag == 1:
            name = protobuf.text(value)
        elif tag == 2:
            kind = int(value)  # type: ignore[arg-type]
        else:
            values[tag].append(value)
    one = {tag: found[-1] for tag, found in values.items()}
    if kind in (0, 9):
        return name, protobuf.integers(one.get(3 if kind == 0 else 13, 0))[0]
    if kind == 1:
        return name, _float(one[4]) if 4 in one else 0.0
    if kind == 2:
        return name, protobuf.text(one[5]) if 5 in one else ""
    if kind in (3, 11):
        return name, [n for each in values[6 if kind == 3 else 15] for n in protobuf.integers(each)]
    if kind == 4:
        return name, [n for each in values[7] for n in _floats(each, "f")]
    if kind == 5:
        return name, [protobuf.text(each) for each in values[8]]
    if kind == 6:
        return name, bool(one.get(10, 0))
    if kind == 7:
        return name, [bool(n) for each in values[11] for n in protobuf.integers(each)]
    if kind == 8:
        return name, protobuf.integers(one.get(12, 0))[0]
    if kind == 12:
        return name, [n for each in values[16] for n in _floats(each, "d")]
    if kind == 13:
        return name, _legacy.Name(protobuf.text(one[17]))
    if kind == 14:
        return name, [_legacy.Name(protobuf.text(each)) for each in values[18]]
    if kind == 15:
        return name, _double(one[19]) if 19 in one else 0.0
    if kind == 16:
        return name, _scalar(one[20])
    if kind == 17:
        return name, [_scalar(each) for each in values[21]]
    return name, None
