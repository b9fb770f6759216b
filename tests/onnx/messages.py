# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX as bytes, written field by field, so that tests need no package of ONNX's and can write what no such
package would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tenon.onnx.protobuf import field

TYPES = {
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
    "text": 8,
}


def tensor(name: str, array: np.ndarray) -> bytes:
    if array.dtype.kind in "OU":
        return (
            b"".join(field(1, size) for size in array.shape)
            + field(2, TYPES["text"])
            + b"".join(field(6, str(item)) for item in array.reshape(-1))
            + field(8, name)
        )
    return (
        b"".join(field(1, size) for size in array.shape)
        + field(2, TYPES[array.dtype.name])
        + field(8, name)
        + field(9, np.ascontiguousarray(array).tobytes())
    )


def attribute(name: str, value: Any) -> bytes:
    head = field(1, name)
    if isinstance(value, float):
        return head + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return head + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return head + field(4, value) + field(20, 3)
    if isinstance(value, np.ndarray):
        return head + field(5, tensor("", value)) + field(20, 4)
    if isinstance(value, bytes):  # a graph
        return head + field(6, value) + field(20, 5)
    if all(isinstance(item, float) for item in value):
        return head + b"".join(field(7, item) for item in value) + field(20, 6)
    if all(isinstance(item, str) for item in value):
        return head + b"".join(field(9, item) for item in value) + field(20, 8)
    return head + b"".join(field(8, item) for item in value) + field(20, 7)


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
) -> bytes:
    return (
        b"".join(field(1, item) for item in inputs)
        + b"".join(field(2, item) for item in outputs)
        + field(3, name)
        + field(4, op)
        + b"".join(field(5, attribute(key, value)) for key, value in attributes.items())
    )


def value(name: str, dtype: str = "float32", shape: Sequence[int | str] = ()) -> bytes:
    sizes = b"".join(
        field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in shape
    )
    return field(1, name) + field(2, field(1, field(1, TYPES[dtype]) + field(2, sizes)))


def graph(
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[str],
    initializers: Mapping[str, np.ndarray] | None = None,
) -> bytes:
    return (
        b"".join(field(1, item) for item in nodes)
        + field(2, "graph")
        + b"".join(field(5, tensor(name, array)) for name, array in (initializers or {}).items())
        + b"".join(field(11, item) for item in inputs)
        + b"".join(field(12, value(name)) for name in outputs)
    )


def model(
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[str],
    initializers: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 21,
    ir: int = 10,
    functions: Sequence[bytes] = (),
    opsets: Mapping[str, int] | None = None,
) -> bytes:
    imports = {"": opset, **(opsets or {})}
    return (
        field(1, ir)
        + field(7, graph(nodes, inputs, outputs, initializers))
        + b"".join(
            field(8, field(1, domain) + field(2, version)) for domain, version in imports.items()
        )
        + b"".join(field(25, item) for item in functions)
    )


def function(
    name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[bytes]
) -> bytes:
    """A function of domain `local`, whose nodes are of opset 21."""
    return (
        field(1, name)
        + b"".join(field(4, item) for item in inputs)
        + b"".join(field(5, item) for item in outputs)
        + b"".join(field(7, item) for item in nodes)
        + field(9, field(2, 21))
        + field(9, field(1, "local") + field(2, 1))
        + field(10, "local")
    )


def local(op: str, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """A node that calls a function of domain `local`."""
    return node(op, inputs, outputs) + field(7, "local")


def ml(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> bytes:
    """A node of ai.onnx.ml."""
    return node(op, inputs, outputs, **attributes) + field(7, "ai.onnx.ml")
