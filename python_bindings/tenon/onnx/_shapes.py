# SPDX-License-Identifier: Apache-2.0
"""Shapes and dtypes of a model's values by our operators' rules, beside what the model or ONNX says of them."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenon._core import Tensor
from tenon.onnx._load import describe, load
from tenon.onnx._model_file import ModelFile, Source, ValueType
from tenon.onnx._reference import shape_of
from tenon.onnx._verify import Shapes
from tenon.onnx.exporter import program_text


@dataclass(frozen=True)
class ShapeDifference:
    """A value whose type is another here than `expected`, and the node that makes it."""

    name: str
    step: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.step}, {self.name}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True)
class ShapeReport:
    """`compared` values of `total` have a type on both sides."""

    compared: int
    total: int
    differences: list[ShapeDifference]

    @property
    def passed(self) -> bool:
        return not self.differences

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        said = f"{len(self.differences)} of {self.compared} types differ; the model has {self.total} values"
        return "\n".join([said, *(f"  {one}" for one in self.differences)])


def check_shapes(
    source: Source,
    *,
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    values: Mapping[str, Tensor] | None = None,
    infer: bool | None = None,
) -> ShapeReport:
    """Compare dtypes and shapes of all nodes' results with what is said of them elsewhere, without running the model.

    Elsewhere is the model itself (its `value_info` and results), and with `infer` ONNX's own shape inference, for which the
    package `onnx` has to be installed; by default (None) where it is. Sizes that are open there fit any. `sizes`,
    `shapes` and `values` as for `load`. Nodes inside of If, Loop, Scan and functions are not looked at.
    """
    model = ModelFile.read(source)
    listed = describe(source)["inputs"]
    fixed = dict(values or {})
    given = {
        item["name"]: shape_of(item, sizes or {}, shapes or {})
        for item in listed
        if item["name"] not in fixed and item.get("kind") != "sequence"
    }
    types = {**model.types, **_inferred(model, infer, given)}
    by_name = {name: node for node in model.nodes for name in node.outputs if name}
    wanted = [name for name in by_name if name in types]
    differences, compared = [], 0
    if wanted:
        with model.written(model.with_results(wanted)) as path:
            program = load(path, shapes=given, values=fixed, passes=())
        results = program_text.read(str(program)).results
        if len(results) != len(wanted):
            raise NotImplementedError("onnx.check_shapes: a value of the model is a sequence")
        for name, value in zip(wanted, results, strict=True):
            expected = types[name]
            if any(not isinstance(size, int) for size in value.shape):
                continue
            compared += 1
            if not _fits(expected, value.dtype, value.shape):
                got = f"{value.dtype}{list(value.shape)}"
                differences.append(ShapeDifference(name, str(by_name[name]), _text(expected), got))
    return ShapeReport(compared, len(by_name), differences)


def _fits(expected: ValueType, dtype: str, shape: tuple[int, ...]) -> bool:
    if expected.dtype is not None and expected.dtype != dtype:
        return False
    if expected.shape is None:
        return True
    return len(expected.shape) == len(shape) and all(
        theirs is None or theirs == ours for theirs, ours in zip(expected.shape, shape, strict=True)
    )


def _text(kind: ValueType) -> str:
    sizes = (
        "?" if kind.shape is None else ", ".join("?" if s is None else str(s) for s in kind.shape)
    )
    return f"{kind.dtype or '?'}[{sizes}]"


def _inferred(
    model: ModelFile, infer: bool | None, shapes: Mapping[str, list[int]]
) -> dict[str, ValueType]:
    """What ONNX's own rules say, for inputs of these shapes."""
    if infer is False:
        return {}
    try:
        onnx = importlib.import_module("onnx")
        inference = importlib.import_module("onnx.shape_inference")
    except ImportError as error:
        if infer is None:
            return {}
        raise ImportError(
            f"onnx.check_shapes: infer=True needs the package onnx, which is not there ({error}); install it"
        ) from None
    message = onnx.load_model_from_string(model.data)
    for value in message.graph.input:
        for axis, size in enumerate(shapes.get(value.name, [])):
            value.type.tensor_type.shape.dim[axis].dim_value = size
    with tempfile.TemporaryDirectory(prefix="tenon-onnx-") as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "inferred.onnx"
        source.write_bytes(message.SerializeToString())
        inference.infer_shapes_path(str(source), str(target), data_prop=True)
        return ModelFile.read(target).types
