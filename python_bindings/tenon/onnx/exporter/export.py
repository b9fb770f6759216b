# SPDX-License-Identifier: Apache-2.0
"""A program as a model of ONNX."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.io import safetensors
from tenon.jit import program as programs
from tenon.jit import structures
from tenon.jit.program import Program
from tenon.onnx.exporter import (  # noqa: F401 - each adds its converters
    control,
    elementwise,
    indexing,
    layers,
    layout,
    lines,
    messages,
    program_text,
    reduction,
)
from tenon.onnx.exporter.converters import CONVERTERS
from tenon.onnx.exporter.program_text import ProgramText, Size, Step, Value
from tenon.onnx.exporter.writer import Refusal, Writer
from tenon.onnx.protobuf import field, head

OPSETS = range(18, 24)
# The lowest IR version that has the opset.
_IR = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
# Parameters that say what the dtype and shape of the result say, or what concerns gradients or errors alone.
_TOLD_BY_RESULT = {
    *("dtype", "device", "shape", "sizes", "ndim", "count", "rows", "columns", "start", "stop"),
    *("input_shape", "padding_index", "low", "high", "op", "what"),
}
_LARGEST_FILE = 2**31 - 2**20  # a message has at most 2 GiB; nodes need some of it
_ALIGNMENT = 4096  # of tensors beside the model, so that they can be mapped


def export(
    function: Callable[..., Any] | Program | str | os.PathLike,
    path: str | os.PathLike,
    inputs: Any = (),
    *,
    dynamic_shapes: Sequence[Any] | None = None,
    opset: int = 20,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    external_data: bool | None = None,
) -> None:
    """Write a function, a layer or a program as a model of ONNX.

    `function` is a `Program`, the path of a saved one, or what `tenon.export` takes together with `inputs` and
    `dynamic_shapes`; it is recorded without gradients then. A layer is exported as it is: call `eval()` first. Sizes that a
    program leaves open are open in the model, under the names of their `tenon.Dim`. Weights are written as they are now.

    `opset` is from 18 to 23, and the IR version the lowest that has it. Results and arguments that are structures become one
    input or output for each tensor, in their order; `input_names` and `output_names` name them in the place of the
    program's names. With `external_data` the weights are in a file beside the model, `path` with ".data" behind it; by
    default (None) they are where the model would have more than 2 GiB. Files appear whole or not at all.

    Raises NotImplementedError for what ONNX cannot say, all operators at once, with the line of the program that called
    them, and what to do instead; ValueError for an opset, names or arguments that are not valid.
    """
    if opset not in OPSETS:
        raise ValueError(
            f"onnx.export: expected an opset from {OPSETS[0]} to {OPSETS[-1]}, got {opset!r}"
        )
    program = _program(function, inputs, dynamic_shapes)
    write_program(
        program,
        path,
        opset=opset,
        input_names=input_names,
        output_names=output_names,
        external_data=external_data,
    )


@dataclass
class Written:
    """A step of the program, and the names of its results in the model; None where the model has none."""

    op: str
    place: str
    results: list[str | None]


def write_program(
    program: Program,
    path: str | os.PathLike,
    *,
    opset: int = 20,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    external_data: bool | None = None,
) -> list[Written]:
    """Export a program; what became of its steps, in their order."""
    text = program_text.read(str(program))
    if not text.results:
        raise ValueError(
            "onnx.export: expected a program with results, got one that returns no tensor"
        )
    tensors = [tensor for _, tensor, _ in program._native.leaves()]
    leaf_names = [name for name, _, _ in program._native.leaves()]
    names_in = _names("input_names", input_names, program.input_names)
    names_out = _names("output_names", output_names, program.output_names)
    g = Writer(opset)
    graph_inputs, graph_outputs = _interface(g, text, names_in, names_out)
    for value, name in zip(text.leaves, leaf_names, strict=True):
        if value.dtype not in messages.ELEMENT_TYPES:
            raise NotImplementedError(
                f"onnx.export: expected weights of dtypes that ONNX has, got {value.dtype} of {name!r}; cast it"
            )
        g.names[value.id] = g.fresh(name or "leaf")
    used = _write_steps(g, text)
    _write_results(g, text, names_out)
    weights = [
        (g.names[value.id], value, tensor)
        for value, tensor in zip(text.leaves, tensors, strict=True)
        if value.id in used
    ]
    _write(os.fspath(path), g, graph_inputs, graph_outputs, weights, external_data)
    return [
        Written(step.op, step.place, [g.names.get(value.id) for value in step.results])
        for step in text.steps
    ]


def _program(function: Any, inputs: Any, dynamic_shapes: Any) -> Program:
    if isinstance(function, (str, os.PathLike)):
        function = programs.load(function)
    if isinstance(function, Program):
        if dynamic_shapes is not None or not (isinstance(inputs, tuple) and not inputs):
            raise ValueError(
                "onnx.export: expected no inputs and dynamic_shapes beside a program, which has its own"
            )
        if structures.has_texts(function._outputs):
            raise TypeError(
                "onnx.export: expected results that are tensors, got some of text, which are not exported"
            )
        return function
    with tenon.no_grad():
        return programs.export(function, inputs, dynamic_shapes=dynamic_shapes)


def _names(what: str, given: Sequence[str] | None, own: list[str]) -> list[str]:
    names = list(own if given is None else given)
    if len(names) != len(own):
        raise ValueError(
            f"onnx.export: expected {len(own)} {what} ({', '.join(own)}), got {len(names)}"
        )
    if given is not None and (len(set(names)) != len(names) or not all(names)):
        raise ValueError(f"onnx.export: expected {what} that differ and are not empty, got {names}")
    return names


def _dims(value: Value) -> list[int | str | None]:
    return [size.text if isinstance(size, Size) else size for size in value.shape]


def _interface(
    g: Writer, text: ProgramText, names_in: list[str], names_out: list[str]
) -> tuple[list[bytes], list[bytes]]:
    """Inputs and outputs of the model; their names are taken before all others."""
    for value in (*text.inputs, *text.results):
        if value.dtype not in messages.ELEMENT_TYPES:
            raise NotImplementedError(
                f"onnx.export: expected inputs and results of dtypes that ONNX has, got {value.dtype}; cast it"
            )
    inputs, outputs = [], []
    for value, name in zip(text.inputs, names_in, strict=True):
        g.names[value.id] = g.fresh(name)
        g.open_sizes(g.names[value.id], value.shape)
        inputs.append(messages.value_info(g.names[value.id], value.dtype, _dims(value)))
    for i, (value, name) in enumerate(zip(text.results, names_out, strict=True)):
        names_out[i] = g.fresh(name)
        outputs.append(messages.value_info(names_out[i], value.dtype, _dims(value)))
    return inputs, outputs


def _write_steps(g: Writer, text: ProgramText) -> set[str]:
    """Nodes for each step whose results are needed; returns the ids of values that are read."""
    refused: dict[str, str] = {}
    used = _write_body(g, text, refused)
    if refused:
        raise NotImplementedError("onnx.export: not exported\n  " + "\n  ".join(refused.values()))
    return used


def _write_body(g: Writer, text: ProgramText, refused: dict[str, str]) -> set[str]:
    """Of a program or a region; what has no form is added to `refused`."""
    used = {value.id for value in text.results}
    needed: list[Step] = []
    for step in reversed(text.steps):
        if any(value.id in used for value in step.results):
            needed.append(step)
            used |= {value.id for value in _read(step)}
    for step in reversed(needed):
        try:
            made = _convert(g, step, refused)
        except Refusal as refusal:
            where = f" at {step.place}" if step.place else ""
            refused.setdefault(f"`{step.op}` {refusal}", f"`{step.op}`{where}: {refusal}")
            made = ["refused"] * len(step.results)
        for value, name in zip(step.results, made, strict=True):
            if name is not None:
                g.names[value.id] = name
            elif value.id in used:
                refused.setdefault(
                    step.op, f"`{step.op}` at {step.place}: ONNX has nothing for one of its results"
                )
                g.names[value.id] = "refused"
    return used


def _read(step: Step) -> Iterator[Value]:
    for operand in (*step.operands, *step.named.values()):
        for each in operand if isinstance(operand, list) else [operand]:
            if isinstance(each, Value):
                yield each


def _convert(g: Writer, step: Step, refused: dict[str, str]) -> Sequence[str | None]:
    g.origin = step.op.rpartition("::")[2]
    for value in step.results:
        if value.dtype not in messages.ELEMENT_TYPES:
            raise Refusal(f"makes {value.dtype}, which ONNX computes nothing with; cast to float32")
    if step.op in control.KINDS:
        return control.write(g, step, lambda inner, region: _write_region(inner, region, refused))
    converter = CONVERTERS.get(step.op)
    if converter:
        made = converter(g, step)
        for name in set(step.named) - step.read - _TOLD_BY_RESULT:
            raise Refusal(
                f"`{name}` = {step.named[name]!r} has no form in ONNX here; use its default"
            )
    else:
        line = lines.find(step.op, g.opset)
        if line is None:
            raise Refusal(
                "it has no form in ONNX here; compute it from operators that have (docs/onnx.md), or outside of the model"
            )
        made = lines.write(line, g, step)
    return made if isinstance(made, list) else [made]


def _write_region(g: Writer, region: ProgramText, refused: dict[str, str]) -> None:
    origin = g.origin
    _write_body(g, region, refused)
    g.origin = origin


def _write_results(g: Writer, text: ProgramText, names: Sequence[str]) -> None:
    for value, name in zip(text.results, names, strict=True):
        g.add("Identity", [g.name(value)], [name], {})


def _write(
    path: str,
    g: Writer,
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    weights: Sequence[tuple[str, Value, Tensor]],
    external_data: bool | None,
) -> None:
    sizes = [tensor.numel() * tensor.dtype.itemsize for _, _, tensor in weights]
    is_apart = sum(sizes) > _LARGEST_FILE if external_data is None else external_data
    if not is_apart and sum(sizes) > _LARGEST_FILE:
        raise ValueError(
            f"onnx.export: expected at most 2 GiB in one file, got weights of {sum(sizes)} bytes; leave external_data out"
        )
    parts: list[bytes | memoryview] = []  # of initializers that are weights
    apart: list[bytes | memoryview] = []
    offset = 0
    for (name, value, tensor), size in zip(weights, sizes, strict=True):
        start = messages.tensor_head(name, value.dtype, tensor.shape)
        data = safetensors.bytes_of(tensor)
        if is_apart:
            gap = -offset % _ALIGNMENT
            apart += [bytes(gap), data]
            offset += gap
            location = messages.external(os.path.basename(path) + ".data", offset, size)
            offset += size
            parts.append(field(5, start + location))
        else:
            whole = len(start) + len(head(9, size)) + size
            parts += [head(5, whole) + start + head(9, size), data]
    graph = messages.graph("tenon", g.nodes, inputs, outputs, g.initializers)
    length = len(graph) + sum(len(part) for part in parts)
    model = messages.model_head(_IR[g.opset], g.opset, tenon.__version__)
    if is_apart:
        safetensors.write_whole(path + ".data", apart)
    safetensors.write_whole(path, itertools.chain((model, head(7, length), graph), parts))
