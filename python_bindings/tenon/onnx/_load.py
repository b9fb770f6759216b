# SPDX-License-Identifier: Apache-2.0
"""Reading a model: its sizes are given, or left open as dimensions of the program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenon import _core
from tenon.jit import structures
from tenon.jit.dynamic_shapes import Dim
from tenon.jit.program import PASSES, Program

Source = str | os.PathLike | bytes


def _model(source: Source) -> _core.OnnxModel:
    return _core.OnnxModel(source if isinstance(source, bytes) else os.fspath(source))


def describe(source: Source) -> dict[str, Any]:
    """What a model says of itself, without loading it: `ir_version`, `producer`, `opsets` (domain to version), `inputs`
    (name, dtype, and shape: numbers, names of open sizes, None for what nothing says) and `outputs` (names)."""
    result: dict[str, Any] = json.loads(_model(source).describe())
    return result


def load(
    source: Source,
    *,
    sizes: Mapping[str, int | Dim] | None = None,
    shapes: Mapping[str, Sequence[Any]] | None = None,
    values: Mapping[str, Any] | None = None,
    passes: Sequence[str] = PASSES,
) -> Program:
    """The model in a file, or in `bytes`, as a program, which takes the model's inputs in their order and returns its outputs: one
    tensor, or a tuple. An input or output that is a sequence is a list of tensors.

    `sizes` are those that the model leaves open, by name: a number, or a `tenon.Dim` for one that each call of the program
    chooses. `shapes` gives whole shapes by the name of the input, for sizes without a name; for a sequence, a list of the shapes
    of its tensors. `values` fixes inputs: the program does not take them, and what follows from them is known while the model is
    loaded, as shapes, axes and numbers of rounds have to be. Inputs of text are fixed, too, by nested lists of `str`; results of
    text are such lists. `passes` as for `tenon.export`.

    The program's inputs and outputs have the model's names. The weights stay in the file, which is mapped and must not be
    changed; they are the program's `leaves`, under their names. `Program.freeze` makes them constants.

    Raises ValueError for what is no model or is wrong in itself, and NotImplementedError for what cannot be imported: all
    operators at once, or the node, with its name, operator and opset.
    """
    model = _model(source)
    described = json.loads(model.describe())
    inputs = described["inputs"]
    is_text = {item["name"]: item["dtype"] == "STRING" for item in inputs}
    texts = [
        (name, *_texts(name, value)) for name, value in (values or {}).items() if is_text.get(name)
    ]
    fixed = {name: value for name, value in (values or {}).items() if not is_text.get(name)}
    known = {item["name"] for item in inputs}
    for name in [*(values or {}), *(shapes or {})]:
        if name not in known:
            raise ValueError(
                f"onnx: expected names of inputs ({', '.join(sorted(known))}), got {name!r}"
            )
    given = _flat_shapes(inputs, shapes or {})
    open_sizes = {name: size for name, size in (sizes or {}).items() if isinstance(size, Dim)}
    plain = {name: size for name, size in (sizes or {}).items() if not isinstance(size, Dim)}
    taken = [item for item in inputs if item["name"] not in (values or {})]
    parts = [_structure_of(item, shapes or {}) for item in taken]

    def made(numbers: Mapping[str, int]) -> tuple[_core.Program, list[Any]]:
        """The model at these sizes."""
        native, text = model.program(dict(numbers), given, fixed, texts, bool(open_sizes))
        results = _parts_of(json.loads(text))
        return native.optimize(",".join(passes)) if passes else native, results

    if open_sizes:
        native, results = _of_many_sizes(made, plain, open_sizes)
    else:
        native, results = made(plain)
    return Program(
        native, ["tuple", parts], results[0] if len(results) == 1 else ["tuple", results]
    )


def _flat_shapes(
    inputs: list[dict[str, Any]], shapes: Mapping[str, Sequence[Any]]
) -> list[tuple[str, Sequence[int]]]:
    """A line for each tensor."""
    flat: list[tuple[str, Sequence[int]]] = []
    for item in inputs:
        shape = shapes.get(item["name"])
        if shape is None:
            continue
        if item.get("kind") == "sequence":
            flat += [(item["name"], each) for each in shape]
        else:
            flat.append((item["name"], shape))
    return flat


def _structure_of(item: dict[str, Any], shapes: Mapping[str, Sequence[Any]]) -> list[Any]:
    if item.get("kind") != "sequence":
        return structures.TENSOR
    return ["list", [structures.TENSOR] * len(shapes.get(item["name"], ()))]


def _parts_of(results: list[Any]) -> list[Any]:
    """A structure for each result of the model."""
    return [
        ["list", [structures.TENSOR] * item[0]]
        if isinstance(item, list)
        else ["texts", item["texts"]]
        if isinstance(item, dict)
        else structures.TENSOR
        for item in results
    ]


def _texts(name: str, value: Any) -> tuple[list[str], list[int]]:
    """The elements of a text, a nested list of them or an array, and the shape."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"onnx: input {name!r}: expected texts without the letter NUL")
        return [value], []
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"onnx: input {name!r}: expected a text, or nested lists of texts, got {type(value).__name__}"
        )
    parts = [_texts(name, item) for item in value]
    if any(shape != parts[0][1] for _, shape in parts):
        raise ValueError(f"onnx: input {name!r}: expected nested lists of the same lengths")
    elements = [element for part, _ in parts for element in part]
    return elements, [len(parts), *(parts[0][1] if parts else [])]


def _of_many_sizes(
    made: Callable[[Mapping[str, int]], tuple[_core.Program, list[Any]]],
    plain: Mapping[str, int],
    open_sizes: Mapping[str, Dim],
) -> tuple[_core.Program, list[Any]]:
    """The model at some sizes, and one program of these."""
    names = list(open_sizes)
    dimensions = [
        (
            dim.name,
            dim.min,
            dim.max,
            dim.multiple_of,
            -(-dim.min // dim.multiple_of) * dim.multiple_of,
        )
        for dim in open_sizes.values()
    ]
    samples: list[_core.Program] = []
    results: list[Any] = []
    for row in _core.program_samples(dimensions):
        native, results = made({**plain, **dict(zip(names, row, strict=True))})
        samples.append(native)
    return _core.program_unify(dimensions, samples, [""] * len(samples)), results
