# SPDX-License-Identifier: Apache-2.0
"""Other runtimes of models, and inputs for them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tenon
from tenon._core import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from tenon._tensor import numpy as np

# What can compute a model beside this library: the package, by the name that callers give.
REFERENCES = {"onnxruntime": "onnxruntime", "onnx": "onnx.reference"}
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def check_reference(name: str) -> None:
    """ValueError for what is no reference, ImportError where its package is missing."""
    if name not in REFERENCES:
        raise ValueError(
            f"onnx: expected reference {' or '.join(map(repr, REFERENCES))}, got {name!r}"
        )
    try:
        importlib.import_module(REFERENCES[name])
    except ImportError as error:
        raise ImportError(
            f"onnx: the reference {name!r} needs the package {name}, which is not there ({error}); install it, or give "
            "saved results with data="
        ) from None


class Reference:
    """A model in a file, as another runtime computes it. `threads`: of the runtime; None: as it likes."""

    def __init__(self, name: str, path: str, *, threads: int | None = None) -> None:
        check_reference(name)
        self.name = name
        module = importlib.import_module(REFERENCES[name])
        if name == "onnx":
            self._model = module.ReferenceEvaluator(importlib.import_module("onnx").load(path))
            self.inputs = list(self._model.input_names)
            return
        options = module.SessionOptions()
        options.log_severity_level = 4
        if threads is not None:
            options.intra_op_num_threads = threads
        self._model = module.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.inputs = [each.name for each in self._model.get_inputs()]

    def run(self, names: Sequence[str], inputs: Mapping[str, Tensor]) -> list[np.ndarray]:
        feeds = {name: array_of(inputs[name]) for name in self.inputs if name in inputs}
        results: list[np.ndarray] = self._model.run(list(names), feeds)
        return results


def array_of(tensor: Tensor) -> np.ndarray:
    if tensor.dtype.name not in (*_FLOATS, "bool") and "int" not in tensor.dtype.name:
        raise NotImplementedError(f"onnx: expected dtypes that NumPy has, got {tensor.dtype}")
    if tensor.dtype == tenon.bfloat16:
        raise NotImplementedError(
            "onnx: NumPy has no bfloat16, so that no reference can be given such inputs; compare a "
            "model of float32"
        )
    return tensor.detach().cpu().numpy()


def drawn_inputs(
    values: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, int],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
) -> dict[str, Tensor]:
    """Inputs of the types that `describe` tells: floats from a normal distribution, 0 and 1 for other dtypes, which are
    valid indices of most tables. ValueError where a size is open and not given."""
    generator = np.random.default_rng(seed)
    drawn = {}
    for value in values:
        name, dtype = value["name"], value["dtype"]
        if value.get("kind") == "sequence" or not hasattr(tenon, dtype):
            raise NotImplementedError(
                f"onnx: input {name!r} is {value.get('kind', dtype)}, for which nothing is drawn; give inputs"
            )
        shape = shape_of(value, sizes, shapes)
        array: np.ndarray
        if dtype in _FLOATS:
            array = generator.standard_normal(shape).astype(np.float32)
        else:
            array = generator.integers(0, 2, shape)
        drawn[name] = (
            tenon.tensor(np.ascontiguousarray(array)).reshape(shape).to(getattr(tenon, dtype))
        )
    return drawn


def shape_of(
    value: Mapping[str, Any], sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> list[int]:
    """The shape of an input that `describe` tells, with `sizes` for what is open."""
    name = value["name"]
    if name in shapes:
        return [int(size) for size in shapes[name]]
    if value["shape"] is None:
        raise ValueError(f"onnx: input {name!r} has any number of axes; give its shape by shapes=")
    shape = []
    for axis, size in enumerate(value["shape"]):
        size = sizes.get(size, size) if isinstance(size, str) else size
        if not isinstance(size, int):
            how = f"sizes={{{size!r}: ...}}" if size else f"shapes={{{name!r}: ...}}"
            raise ValueError(
                f"onnx: the size of axis {axis} of input {name!r} is open; give it by {how}"
            )
        shape.append(size)
    return shape
