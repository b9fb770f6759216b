# SPDX-License-Identifier: Apache-2.0
"""Writing messages of ONNX.

The numbers of the fields are those of `onnx.proto`, which never change; `plugins/onnx/reader` reads the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenon.onnx.protobuf import field

ELEMENT_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
}


class Graph(bytes):
    """A message of a graph, as the value of an attribute."""


def tensor_head(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    """A tensor without its elements."""
    sizes = b"".join(field(1, size) for size in shape)
    return sizes + field(2, ELEMENT_TYPES[dtype]) + field(8, name)


def tensor(name: str, dtype: str, shape: Sequence[int], data: bytes) -> bytes:
    return tensor_head(name, dtype, shape) + field(9, data)


def external(location: str, offset: int, length: int) -> bytes:
    """Where the elements of a tensor stand in another file."""
    entries = {"location": location, "offset": str(offset), "length": str(length)}
    listed = (field(1, key) + field(2, value) for key, value in entries.items())
    return b"".join(field(13, entry) for entry in listed) + field(14, 1)


def attribute(name: str, value: Any) -> bytes:
    start = field(1, name)
    if isinstance(value, Graph):
        return start + field(6, bytes(value)) + field(20, 5)
    if isinstance(value, float):
        return start + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return start + field(3, int(value)) + field(20, 2)
    if isinstance(value, str):
        return start + field(4, value) + field(20, 3)
    if value and all(isinstance(item, float) for item in value):
        return start + b"".join(field(7, item) for item in value) + field(20, 6)
    return start + b"".join(field(8, int(item)) for item in value) + field(20, 7)


def node(
    op: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    attributes: Mapping[str, Any],
) -> bytes:
    return (
        b"".join(field(1, item) for item in inputs)
        + b"".join(field(2, item) for item in outputs)
        + field(3, name)
        + field(4, op)
        + b"".join(field(5, attribute(key, value)) for key, value in attributes.items())
    )


def value_info(name: str, dtype: str, shape: Sequence[int | str | None]) -> bytes:
    """`shape`: numbers, names of open sizes, None for what nothing says."""
    sizes = b"".join(
        field(1, b"" if size is None else field(2 if isinstance(size, str) else 1, size))
        for size in shape
    )
    return field(1, name) + field(2, field(1, field(1, ELEMENT_TYPES[dtype]) + field(2, sizes)))


def graph(
    name: str,
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    initializers: Sequence[bytes] = (),
) -> bytes:
    return (
        b"".join(field(1, item) for item in nodes)
        + field(2, name)
        + b"".join(field(5, item) for item in initializers)
        + b"".join(field(11, item) for item in inputs)
        + b"".join(field(12, item) for item in outputs)
    )


def model_head(ir: int, opset: int, version: str) -> bytes:
    """A model without its graph, which is field 7."""
    imports = field(1, "") + field(2, opset)
    return field(1, ir) + field(2, "tenon") + field(3, version) + field(8, imports)
