# SPDX-License-Identifier: Apache-2.0
"""The first step of a model or program whose value differs from another runtime's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit.program import Program
from tenon.onnx._differences import Difference, difference
from tenon.onnx._load import describe, load
from tenon.onnx._model_file import ModelFile, Node, Source, ValueType
from tenon.onnx._reference import Reference, check_reference
from tenon.onnx._verify import Shapes, inputs_of_program, prepared, results_of
from tenon.onnx.exporter.export import write_program

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

CHUNK = 64  # nodes whose values are held at once


@dataclass
class Divergence:
    """`step` is the first whose result differs, and `result` says how; `inputs` are the errors of what it was given, which
    are within the tolerance. `alone`: how it differs where it is given the other runtime's values; None: it was not tried."""

    step: str
    result: Difference
    inputs: list[Difference] = field(default_factory=list)
    alone: Difference | None = None

    def __str__(self) -> str:
        lines = [f"{self.step} differs", f"  {self.result}"]
        lines += [f"  its input {one}" for one in self.inputs]
        if self.alone is not None:
            how = "equal: what differs came in" if self.alone.passed else str(self.alone)
            lines.append(f"  given the other's inputs: {how}")
        return "\n".join(lines)


def bisect(
    model: Source | Program,
    inputs: Mapping[str, Any] | None = None,
    *,
    reference: str = "onnxruntime",
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    values: Mapping[str, Tensor] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Divergence | None:
    """The first step of a model whose value differs from that of another runtime; None: none does.

    Arguments are those of `verify`. Of a model of ONNX steps are its nodes, in their order, compared by the names of their
    results; those inside of If, Loop, Scan and functions are not looked at. The node that differs also runs alone on the other
    runtime's values, which tells a wrong node from one that enlarges the rounding before it. Of a `Program`
    steps are its own, beside the nodes that `export` writes for them: that finds what export gets wrong.

    `progress(done, total)` is called as steps are compared. Values of 64 nodes are held at once.
    """
    check_reference(reference)
    if isinstance(model, Program):
        if values or shapes:
            raise ValueError(
                "onnx.bisect: expected values= and shapes= with a model of ONNX, got a program"
            )
        given = inputs_of_program(model, inputs or {}, sizes or {}, seed)
        return _bisect_program(model, given, reference, rtol, atol, progress)
    given, _ = prepared(model, inputs, sizes, shapes, values, seed)
    search = _Search(ModelFile.read(model), given, dict(values or {}), reference, rtol, atol)
    return search.first(progress)


@dataclass
class _Search:
    model: ModelFile
    given: dict[str, Tensor]
    fixed: dict[str, Tensor]
    reference: str
    rtol: float
    atol: float

    def first(self, progress: Callable[[int, int], None] | None) -> Divergence | None:
        nodes = self.model.nodes
        for start in range(0, len(nodes), CHUNK):
            chunk = nodes[start : start + CHUNK]
            ours, theirs = self.values_of([name for node in chunk for name in node.outputs if name])
            for node in chunk:
                for name in node.outputs:
                    if name not in ours or name not in theirs:
                        continue  # one side has no tensor of this name
                    found = difference(name, ours[name], theirs[name], self.rtol, self.atol)
                    if not found.passed:
                        return self.explained(node, found)
            if progress:
                progress(min(start + CHUNK, len(nodes)), len(nodes))
        return None

    def values_of(self, names: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
        """Values here and there, by name; those that are no tensors are left out."""
        names = list(dict.fromkeys(names))
        if not names:
            return {}, {}
        data = self.model.with_results(names)
        open_shapes = {
            name: list(value.shape) for name, value in self.given.items() if name not in self.fixed
        }
        with self.model.written(data) as path:
            program = load(path, shapes=open_shapes, values=self.fixed)
            own = results_of(program, [self.given[name] for name in open_shapes])
            theirs = Reference(self.reference, path).run(names, self.given)
        ours = {n: v for n, v in zip(names, own, strict=True) if isinstance(v, Tensor)}
        return ours, {n: v for n, v in zip(names, theirs, strict=True) if isinstance(v, np.ndarray)}

    def explained(self, node: Node, found: Difference) -> Divergence:
        made = {name for other in self.model.nodes for name in other.outputs}
        names = [name for name in node.inputs if name in made]
        ours, theirs = self.values_of(names)
        before = [
            difference(name, ours[name], theirs[name], self.rtol, self.atol)
            for name in dict.fromkeys(names)
            if name in ours and name in theirs
        ]
        return Divergence(str(node), found, before, self.alone(node, found.name, theirs))

    def alone(self, node: Node, name: str, theirs: dict[str, np.ndarray]) -> Difference | None:
        """The node on the other runtime's values, here and there."""
        if node.has_graphs:
            return None
        arrays = dict(theirs)
        for each in node.inputs:
            if each in self.given:
                arrays[each] = self.given[each].detach().cpu().numpy()
        wanted = [each for each in dict.fromkeys(node.inputs) if each]
        weights = [each for each in wanted if each not in arrays]
        if weights:  # of the model itself: a program that returns them
            data = self.model.with_results(weights)
            with self.model.written(data) as path:
                other = Reference(self.reference, path).run(weights, self.given)
            arrays.update(zip(weights, other, strict=True))
        types, constants = {}, []
        for each in wanted:
            array = np.ascontiguousarray(arrays[each]).reshape(np.shape(arrays[each]))
            if array.dtype.kind in "iub" and array.nbytes <= 1 << 12:  # shapes, axes: known at once
                constants.append((each, array.dtype.name, array.shape, array.tobytes()))
            else:
                types[each] = ValueType(array.dtype.name, array.shape)
        try:
            data = self.model.alone(node, types, constants)
            program = load(data)
            names = [each for each in node.outputs if each]
            got = results_of(
                program, [_core.asarray(np.ascontiguousarray(arrays[each])) for each in types]
            )
            with self.model.written(data) as path:
                feeds = {each: _core.asarray(np.ascontiguousarray(arrays[each])) for each in types}
                expected = Reference(self.reference, path).run([name], feeds)[0]
        except (ValueError, KeyError, NotImplementedError, RuntimeError):
            return None  # it cannot stand alone
        return difference(name, got[names.index(name)], expected, self.rtol, self.atol)


def _bisect_program(
    program: Program,
    given: dict[str, Tensor],
    reference: str,
    rtol: float,
    atol: float,
    progress: Callable[[int, int], None] | None,
) -> Divergence | None:
    with tempfile.TemporaryDirectory(prefix="tenon-onnx-") as folder:
        path, saved = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.tenon")
        steps = write_program(program, path)
        program.save(saved)
        model = ModelFile.read(path)
        made = {name for node in model.nodes for name in node.outputs}
        names = [name for each in steps for name in each.results if name in made]
        described = describe(path)["inputs"]
        feeds = {each["name"]: v for each, v in zip(described, given.values(), strict=True)}
        expected: dict[str, np.ndarray] = {}
        for start in range(0, len(names), CHUNK):
            part = list(dict.fromkeys(names[start : start + CHUNK]))
            with model.written(model.with_results(part)) as other:
                expected.update(
                    zip(part, Reference(reference, other).run(part, feeds), strict=True)
                )
            if progress:
                progress(min(start + CHUNK, len(names)), len(names))
        found: list[Divergence] = []

        def compare(index: int, op: str, file: str, line: int, results: list[Tensor]) -> None:
            step = steps[index] if index < len(steps) else None
            if found or step is None or step.op != op:
                return
            for name, value in zip(step.results, results, strict=False):
                if name not in expected:
                    continue
                one = difference(name, value, expected[name], rtol, atol)
                if not one.passed:
                    where = f" at {step.place}" if step.place else ""
                    found.append(Divergence(f"step {index} ({op}){where}", one))
                    return

        predictor = _core.Predictor(saved, [("fallback", "allow")])
        predictor.set_hook(compare)
        predictor.run(list(given), list(given.values()), [name for name, *_ in predictor.outputs()])
    return found[0] if found else None
