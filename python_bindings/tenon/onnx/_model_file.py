# SPDX-License-Identifier: Apache-2.0
"""A model's nodes and types as they stand in its file, and models of the same nodes with other results."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tenon.onnx import protobuf
from tenon.onnx.exporter import messages

Source = str | os.PathLike | bytes
DTYPES = {number: name for name, number in messages.ELEMENT_TYPES.items()}


@dataclass
class Node:
    index: int
    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    has_graphs: bool
    message: memoryview

    def __str__(self) -> str:
        return f"node {self.index}" + (f' "{self.name}"' if self.name else "") + f" ({self.op})"


@dataclass
class ValueType:
    """Of a tensor; `shape` has None where a size is open, and is None where nothing is said."""

    dtype: str | None
    shape: tuple[int | None, ...] | None


@dataclass
class ModelFile:
    """`nodes`, and `types` by the name of a value, of the graph of a model in `data`."""

    data: bytes
    folder: Path | None  # of external data
    nodes: list[Node] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    initializers: set[str] = field(default_factory=set)
    types: dict[str, ValueType] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)
    _head: bytes = b""  # the model without its graph
    _graph: bytes = b""

    @classmethod
    def read(cls, source: Source) -> ModelFile:
        """ValueError: no model can be read there."""
        if isinstance(source, bytes):
            model = cls(source, None)
        else:
            path = Path(source)
            model = cls(path.read_bytes(), path.parent)
        graphs = []
        for tag, value in protobuf.fields(model.data):
            if tag == 7 and isinstance(value, memoryview):
                graphs.append(bytes(value))
            else:
                model._head += _written(tag, value)
        model._graph = b"".join(graphs)
        for tag, value in protobuf.fields(model._graph):
            if isinstance(value, memoryview):
                model._read_field(tag, value)
        return model

    def _read_field(self, tag: int, value: memoryview) -> None:
        if tag == 1:
            self.nodes.append(_node(len(self.nodes), value))
        elif tag == 5:
            name, locations = _initializer(value)
            self.initializers.add(name)
            self.external |= locations
        elif tag in (11, 12, 13):
            name, kind = _value_info(value)
            if tag == 11:
                self.inputs.append(name)
            elif tag == 12:
                self.outputs.append(name)
            if kind is not None:
                self.types[name] = kind

    def with_results(self, names: Iterable[str]) -> bytes:
        """The same model, whose results are these values."""
        graph = b"".join(
            _written(tag, value) for tag, value in protobuf.fields(self._graph) if tag != 12
        )
        for name in names:
            # A type that is known is kept: readers that need one infer the others.
            kind = self.types.get(name)
            info = protobuf.field(1, name)
            if kind is not None and kind.dtype is not None and kind.shape is not None:
                info = messages.value_info(name, kind.dtype, kind.shape)
            graph += protobuf.field(12, info)
        return self._head + protobuf.field(7, graph)

    def alone(
        self,
        node: Node,
        types: dict[str, ValueType],
        constants: Sequence[tuple[str, str, Sequence[int], bytes]],
    ) -> bytes:
        """A model of one node. `types`: of its inputs; `constants`: (name, dtype, shape, bytes) of those that are known."""
        infos = []
        for name, kind in types.items():
            assert kind.dtype is not None and kind.shape is not None
            infos.append(messages.value_info(name, kind.dtype, kind.shape))
        tensors = [messages.tensor(*each) for each in constants]
        outputs = [protobuf.field(1, name) for name in node.outputs if name]
        graph = messages.graph("node", [bytes(node.message)], infos, outputs, tensors)
        return self._head + protobuf.field(7, graph)

    @contextmanager
    def written(self, data: bytes) -> Iterator[str]:
        """The path of a file with a model of this one's weights, which is there inside the block."""
        with tempfile.TemporaryDirectory(prefix="tenon-onnx-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(data)
            for location in self.external if self.folder else ():
                _bring(self.folder, Path(folder), location)
            yield str(path)


def _bring(source: Path | None, folder: Path, location: str) -> None:
    """External data into another folder: the same file where the file system can, else a copy."""
    assert source is not None
    if not location or os.path.isabs(location) or ".." in Path(location).parts:
        raise ValueError(
            f"external data: expected a file beneath the model's folder, got {location!r}"
        )
    target = folder / location
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source / location, target)
    except OSError:
        shutil.copyfile(source / location, target)


def _written(tag: int, value: int | memoryview) -> bytes:
    return protobuf.field(tag, value if isinstance(value, int) else bytes(value))


def _node(index: int, message: memoryview) -> Node:
    node = Node(index, "", "", [], [], False, message)
    domain = ""
    for tag, value in protobuf.fields(message):
        if tag == 1:
            node.inputs.append(protobuf.text(value))
        elif tag == 2:
            node.outputs.append(protobuf.text(value))
        elif tag == 3:
            node.name = protobuf.text(value)
        elif tag == 4:
            node.op = protobuf.text(value)
        elif tag == 5 and isinstance(value, memoryview):
            node.has_graphs |= any(inner in (6, 11) for inner, _ in protobuf.fields(value))
        elif tag == 7:
            domain = protobuf.text(value)
    node.op = f"{domain}::{node.op}" if domain else node.op
    return node


def _initializer(message: memoryview) -> tuple[str, set[str]]:
    name, locations = "", set()
    for tag, value in protobuf.fields(message):
        if tag == 8:
            name = protobuf.text(value)
        elif tag == 13 and isinstance(value, memoryview):
            entry = {inner: protobuf.text(part) for inner, part in protobuf.fields(value)}
            if entry.get(1) == "location":
                locations.add(entry.get(2, ""))
    return name, locations


def _value_info(message: memoryview) -> tuple[str, ValueType | None]:
    name, kind = "", None
    for tag, value in protobuf.fields(message):
        if tag == 1:
            name = protobuf.text(value)
        elif tag == 2 and isinstance(value, memoryview):
            for inner, tensor in protobuf.fields(value):
                if inner == 1 and isinstance(tensor, memoryview):
                    kind = _tensor_type(tensor)
    return name, kind


def _tensor_type(message: memoryview) -> ValueType:
    kind = ValueType(None, None)
    for tag, value in protobuf.fields(message):
        if tag == 1 and isinstance(value, int):
            kind.dtype = DTYPES.get(value)
        elif tag == 2 and isinstance(value, memoryview):
            sizes: list[int | None] = []
            for inner, dimension in protobuf.fields(value):
                if inner == 1 and isinstance(dimension, memoryview):
                    parts = dict(protobuf.fields(dimension))
                    size = parts.get(1)
                    sizes.append(protobuf.integers(size)[0] if isinstance(size, int) else None)
            kind.shape = tuple(sizes)
    return kind


def operators(source: Source) -> list[str]:
    """The operator of each node of a model's graph, "domain::name" where the domain is not ai.onnx; those inside of
    If, Loop, Scan and functions are not among them."""
    return [node.op for node in ModelFile.read(source).nodes]
