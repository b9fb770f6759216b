# SPDX-License-Identifier: Apache-2.0
"""Paddle's saved models as programs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenon import _core
from tenon.jit import structures
from tenon.jit.dynamic_shapes import Dim
from tenon.jit.program import PASSES, Program
from tenon.paddle import _pir, _program_desc, _weights
from tenon.paddle._blocks import Key, SavedModel
from tenon.paddle._walk import Constants, Walk

_MOST: Final = 1 << 20  # of a batch that nothing bounds


def load(
    source: str | os.PathLike,
    *,
    params: str | os.PathLike | None = None,
    shapes: Mapping[str, Sequence[int | Dim]] | None = None,
    until: str | None = None,
) -> Program:
    """The program of a model that Paddle has saved for inference: a `.json` file of Paddle 3, or a `.pdmodel` file of Paddle 2. Paddle
    is not needed.

    It takes the model's inputs in their order and returns its results: one tensor, or a tuple; both have the model's names. `params`:
    the file of the weights, by default the model's with the ending `.pdiparams`. Weights stay in the mapped file where their
    place in it allows that, and are the program's `leaves`, under their names.

    `shapes`: of inputs, by name, with a number or a `tenon.Dim` for each size. It may be left out for an input whose first size
    alone is open: each call chooses that one, the same for all such inputs.

    `until`: the kind of an operator, "multiclass_nms3". The results are the tensors that the first one of its kind takes, with
    the names of its parameters, and nothing from it on is loaded: a program has no results whose size depends on data, as those of
    suppression have.

    Raises ValueError for files that are no model, and NotImplementedError with all operators that cannot be told, each with its
    reason.
    """
    path = os.fspath(source)
    model = _model(path)
    if until is not None:
        _cut(model, until)
    beside = os.path.splitext(path)[0] + ".pdiparams"
    weights = _weights.read(params if params is not None else beside, model.parameters)
    given = _shapes(model, shapes or {})
    dims = {size.name: size for shape in given.values() for size in shape if isinstance(size, Dim)}
    constants = Constants()

    def built(sizes: Mapping[str, int]) -> _core.Program:
        plain = {
            name: [sizes[size.name] if isinstance(size, Dim) else size for size in shape]
            for name, shape in given.items()
        }
        native, _ = Walk.of_model(model, plain, weights, constants)
        names = [each.name for each in model.inputs], [name for name, _ in model.outputs]
        return native.name(*map(_unique, names)).optimize(",".join(PASSES))

    native = _of_many_sizes(model.name, built, dims) if dims else built({})
    results = [structures.TENSOR] * len(model.outputs)
    return Program(
        native,
        ["tuple", [structures.TENSOR] * len(model.inputs)],
        results[0] if len(results) == 1 else ["tuple", results],
    )


def _cut(model: SavedModel, until: str) -> None:
    """What the first operator of a kind takes becomes the model's results."""
    operators = model.block.operators
    for index, each in enumerate(operators):
        if until in (each.kind, each.label):
            del operators[index:]
            taken = {key: name for name, key in each.arguments.items() if isinstance(key, Key)}
            model.outputs = [(name, key) for key, name in taken.items()]
            return
    kinds = ", ".join(dict.fromkeys(each.kind for each in operators))
    raise ValueError(
        f"paddle.load: {model.name}: expected the kind of one of its operators as until=, {kinds}; got {until!r}"
    )


def input_names(source: str | os.PathLike) -> list[str]:
    """The names of a saved model's inputs, in order, without loading it."""
    return [each.name for each in _model(os.fspath(source)).inputs]


def _model(path: str) -> SavedModel:
    name = f"paddle.load: {os.path.basename(path)}"
    with open(path, "rb") as file:
        data = file.read()
    model = (_pir if data[:1] == b"{" else _program_desc).read(data, name)
    model.name = os.path.basename(path)
    if not model.outputs:
        raise ValueError(f"{name}: expected a model with results, found none")
    return model


def _shapes(
    model: SavedModel, shapes: Mapping[str, Sequence[int | Dim]]
) -> dict[str, list[int | Dim]]:
    known = [each.name for each in model.inputs]
    for name in shapes:
        if name not in known:
            raise ValueError(
                f"paddle.load: {model.name}: expected shapes of the inputs {', '.join(known)}, got {name!r}"
            )
    batch = Dim("batch", min=1, max=_MOST)
    given: dict[str, list[int | Dim]] = {}
    for each in model.inputs:
        said = list(each.type.shape or ())
        wanted = list(
            shapes.get(each.name, [batch if i == 0 and s == -1 else s for i, s in enumerate(said)])
        )
        fits = len(wanted) == len(said) and all(
            size == -1 or own == size for size, own in zip(said, wanted, strict=True)
        )
        if not fits:
            raise ValueError(
                f"paddle.load: {model.name}: expected a shape that fits {said} for the input {each.name!r}, got {wanted}"
            )
        if any(not isinstance(size, Dim) and size < 0 for size in wanted):
            raise ValueError(
                f"paddle.load: {model.name}: input {each.name!r} is of shape {said}; give its open sizes, "
                f"shapes={{{each.name!r}: {[1 if size == -1 else size for size in said]}}}, with a number or a tenon.Dim for each"
            )
        given[each.name] = wanted
    return given


def _unique(names: list[str]) -> list[str]:
    """Names that are there twice are none."""
    return [name if names.count(name) == 1 else "" for name in names]


def _of_many_sizes(name: str, built: Any, dims: Mapping[str, Dim]) -> _core.Program:
    rows = [
        (
            dim.name,
            dim.min,
            dim.max,
            dim.multiple_of,
            -(-dim.min // dim.multiple_of) * dim.multiple_of,
        )
        for dim in dims.values()
    ]
    samples = _core.program_samples(rows)
    try:
        programs = [built(dict(zip(dims, row, strict=True))) for row in samples]
        return _core.program_unify(rows, programs, [""] * len(programs))
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise NotImplementedError(
            f"paddle.load: {name}: with the open sizes {', '.join(dims)}, which shapes= can give: {error}"
        ) from None
