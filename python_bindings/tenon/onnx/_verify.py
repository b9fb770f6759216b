# SPDX-License-Identifier: Apache-2.0
"""A model's results beside those of another runtime, or beside saved ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit import structures
from tenon.jit.program import Program
from tenon.onnx import protobuf
from tenon.onnx._differences import Difference, difference
from tenon.onnx._load import describe, load
from tenon.onnx._model_file import ModelFile, Source
from tenon.onnx._reference import Reference, check_reference, drawn_inputs
from tenon.onnx.exporter import export, messages

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

Shapes = Mapping[str, Sequence[int]]


@dataclass
class Verification:
    """What `verify` found: `sets` has for each set of inputs its name and a `Difference` for each result."""

    reference: str
    rtol: float
    atol: float
    sets: list[tuple[str, list[Difference]]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(one.passed for _, outputs in self.sets for one in outputs)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        said = "equal" if self.passed else "different"
        lines = [f"{said}, beside {self.reference}, rtol {self.rtol:g}, atol {self.atol:g}"]
        for name, outputs in self.sets:
            lines += [f"  {name}{': ' if name else ''}{one}" for one in outputs]
        return "\n".join(lines)


def verify(
    model: Source | Program,
    inputs: Mapping[str, Any] | None = None,
    *,
    data: str | os.PathLike | None = None,
    reference: str = "onnxruntime",
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    values: Mapping[str, Tensor] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    seed: int = 0,
) -> Verification:
    """Run a model here and elsewhere, and compare each result.

    `model` is the path or the bytes of a model of ONNX, which `load` reads; or a `Program`, which `export` writes.

    `inputs` are tensors, or what `tenon.asarray` takes, by name; those that are left out are drawn: floats from a normal
    distribution, 0 and 1 for other dtypes. `sizes` are numbers for what the model leaves open, `shapes` and
    `values` as for `load`; `values` are given to both.

    `reference`: "onnxruntime", or "onnx", the reference of ONNX's own package; the package has to be installed. With `data` the
    results are compared with saved ones instead: a folder with `input_0.pb`, ... and `output_0.pb`, ..., or one
    with several such folders, as ONNX's model zoo has them.

    Elements are equal as `numpy.isclose` says, with `rtol` and `atol`; integers and bools have to be the same.

    Raises what `load` and `export` raise; ValueError for inputs that do not fit, ImportError where the reference is not there.
    """
    if data is not None:
        if inputs is not None or isinstance(model, Program):
            raise ValueError(
                "onnx.verify: expected data= with a model alone, whose inputs the folder has"
            )
        return _verify_saved(model, Path(data), values or {}, rtol, atol)
    check_reference(reference)
    if isinstance(model, Program):
        if values:
            raise ValueError("onnx.verify: expected values= with a model of ONNX, got a program")
        return _verify_program(model, inputs or {}, reference, sizes or {}, rtol, atol, seed)
    given, program = prepared(model, inputs, sizes, shapes, values, seed)
    names = describe(model)["outputs"]
    got = results_of(program, [given[name] for name in given if name not in (values or {})])
    with _path_of(model) as path:
        expected = Reference(reference, path).run(names, given)
    found = Verification(reference, rtol, atol)
    found.sets.append(("", compared(names, got, expected, rtol, atol)))
    return found


def prepared(
    model: Source,
    inputs: Mapping[str, Any] | None,
    sizes: Mapping[str, int] | None,
    shapes: Shapes | None,
    values: Mapping[str, Tensor] | None,
    seed: int,
) -> tuple[dict[str, Tensor], Program]:
    """All inputs of a model by name in its order, those of `values` among them, and its program for them."""
    listed = describe(model)["inputs"]
    fixed = dict(values or {})
    own = {name: _core.asarray(value) for name, value in (inputs or {}).items()}
    known = [value["name"] for value in listed]
    for name in [*own, *fixed]:
        if name not in known:
            raise ValueError(f"onnx: expected names of inputs ({', '.join(known)}), got {name!r}")
    missing = [value for value in listed if value["name"] not in own | fixed]
    drawn = drawn_inputs(missing, sizes or {}, shapes or {}, seed)
    given = {name: (fixed | own | drawn)[name] for name in known}
    fitting = {name: list(given[name].shape) for name in known if name not in fixed}
    return given, load(model, shapes=fitting, values=fixed)


def results_of(program: Program, inputs: Sequence[Tensor]) -> list[Any]:
    """Its results in order; one that is a sequence stays a list."""
    result = program(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def compared(
    names: Sequence[str],
    got: Sequence[Any],
    expected: Sequence[Any],
    rtol: float,
    atol: float,
) -> list[Difference]:
    rows = []
    for name, mine, theirs in zip(names, got, expected, strict=True):
        if not isinstance(mine, list):
            rows.append(difference(name, mine, theirs, rtol, atol))
            continue
        if not isinstance(theirs, list) or len(theirs) != len(mine):
            rows.append(
                Difference(name, "sequence", (len(mine),), problem="expected another length")
            )
            continue
        parts = [f"{name}[{i}]" for i in range(len(mine))]
        rows += compared(parts, mine, theirs, rtol, atol)
    return rows


def _path_of(model: Source) -> Any:
    if isinstance(model, bytes):
        return ModelFile.read(model).written(model)
    return _Path(os.fspath(model))


class _Path:
    """A path that is there already, as a context."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *error: object) -> None:
        pass


# -- programs ---------------------------------------------------------------------------------------------


def inputs_of_program(
    program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int], seed: int
) -> dict[str, Tensor]:
    """All inputs of a program by name in its order."""
    listed = [
        {"name": name, "dtype": dtype.name, "shape": shape}
        for name, dtype, shape in _types_of_inputs(program)
    ]
    known = [value["name"] for value in listed]
    own = {name: _core.asarray(value) for name, value in inputs.items()}
    for name in own:
        if name not in known:
            raise ValueError(f"onnx: expected names of inputs ({', '.join(known)}), got {name!r}")
    least = {dim.name: dim.min for dim in program.dimensions}
    missing = [value for value in listed if value["name"] not in own]
    drawn = drawn_inputs(missing, {**least, **sizes}, {}, seed)
    return {name: (own | drawn)[name] for name in known}


def _types_of_inputs(program: Program) -> Iterator[tuple[str, Any, list[int | str]]]:
    with tempfile.TemporaryDirectory(prefix="tenon-onnx-") as folder:
        path = os.path.join(folder, "program.tenon")
        program.save(path)
        native = _core.Predictor(path, [("fallback", "allow")])
        dimensions = [dimension[0] for dimension in native.dimensions()]
        for name, dtype, shape, which in native.inputs():
            sizes: list[int | str] = [
                dimensions[index] if index >= 0 else size
                for size, index in zip(shape, which, strict=True)
            ]
            yield name, dtype, sizes


def _verify_program(
    program: Program,
    inputs: Mapping[str, Any],
    reference: str,
    sizes: Mapping[str, int],
    rtol: float,
    atol: float,
    seed: int,
) -> Verification:
    given = inputs_of_program(program, inputs, sizes, seed)
    results = program(*structures.unflatten(program._inputs, iter(given.values())))
    got: list[Tensor] = []
    structures.flatten(results, got)
    with tempfile.TemporaryDirectory(prefix="tenon-onnx-") as folder:
        path = os.path.join(folder, "model.onnx")
        export(program, path)
        names = describe(path)["outputs"]
        model_inputs = describe(path)["inputs"]
        feeds = {each["name"]: v for each, v in zip(model_inputs, given.values(), strict=True)}
        expected = Reference(reference, path).run(names, feeds)
    found = Verification(reference, rtol, atol)
    found.sets.append(("", compared(names, got, expected, rtol, atol)))
    return found


# -- saved results ------------------------------------------------------------------------------------------


def read_tensor(path: str | os.PathLike) -> Tensor:
    """A tensor in a file that ONNX's tools wrote (`input_0.pb`). ValueError: it is none."""
    data = Path(path).read_bytes()
    # As the one weight of a model: what is read is what the importer reads.
    named = data + protobuf.field(8, "tensor")
    graph = messages.graph("tensor", [], [], [protobuf.field(1, "tensor")], [named])
    imports = protobuf.field(8, protobuf.field(1, "") + protobuf.field(2, 21))
    try:
        program = load(protobuf.field(1, 10) + imports + protobuf.field(7, graph))
        result: Tensor = program()
    except (ValueError, NotImplementedError) as error:
        raise ValueError(f"{os.fspath(path)}: expected a tensor of ONNX: {error}") from None
    return result


def _verify_saved(
    model: Source, folder: Path, values: Mapping[str, Tensor], rtol: float, atol: float
) -> Verification:
    if not folder.is_dir():
        raise ValueError(
            f"onnx.verify: expected a folder with input_0.pb and output_0.pb, got {folder}"
        )
    folders = [folder]
    if not list(folder.glob("output_*.pb")):
        folders = sorted(part for part in folder.iterdir() if list(part.glob("output_*.pb")))
    if not folders:
        raise ValueError(
            f"onnx.verify: expected output_0.pb in {folder} or in folders of it, got none"
        )
    described = describe(model)
    names = [value["name"] for value in described["inputs"]]
    found = Verification("saved results", rtol, atol)
    for part in folders:
        inputs = {}
        for index, name in enumerate(names):
            path = part / f"input_{index}.pb"
            if path.exists():
                inputs[name] = read_tensor(path)
        missing = [name for name in names if name not in inputs and name not in values]
        if missing:
            raise ValueError(
                f"onnx.verify: expected a file input_N.pb in {part} for each input, none for {missing[0]!r}"
            )
        given, program = prepared(model, inputs, None, None, values, 0)
        got = results_of(program, [given[name] for name in given if name not in values])
        expected = [
            array_or_problem(part / f"output_{index}.pb")
            for index in range(len(described["outputs"]))
        ]
        rows = compared(described["outputs"], got, expected, rtol, atol)
        found.sets.append((part.name if len(folders) > 1 else "", rows))
    return found


def array_or_problem(path: Path) -> np.ndarray:
    if not path.exists():
        raise ValueError(f"onnx.verify: expected the saved result {path}, got no such file")
    return read_tensor(path).numpy()
