# SPDX-License-Identifier: Apache-2.0
"""Models that take text: loaded for what each call brings."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon.jit.program import PASSES, Program
from tenon.onnx._load import Source, _model, _texts, load

_MAX_PROGRAMS = 32


class Runner:
    """Computes a model call by call, of any texts and sizes.

        runner = tenon.onnx.Runner("pipeline.onnx")
        runner({"city": ["Oslo", "Rome"], "x": x})["label"]

    What a model does with text is done while it is loaded: a call with other texts, other shapes or other numbers of the inputs
    in `known` loads the model again, which takes milliseconds; the programs of the last 32 calls that differed are kept. Inputs
    are tensors, what `tenon.asarray` takes, and texts as nested lists of `str`; results are tensors and such lists. One thread at
    a time.
    """

    def __init__(
        self, source: Source, *, known: Sequence[str] = (), passes: Sequence[str] = PASSES
    ) -> None:
        self._source, self._passes = source, passes
        described = json.loads(_model(source).describe())
        self.inputs = [item["name"] for item in described["inputs"]]
        self.outputs = list(described["outputs"])
        for name in known:
            if name not in self.inputs:
                raise ValueError(
                    f"onnx: known: expected names of inputs ({', '.join(self.inputs)}), got {name!r}"
                )
        self._known = set(known)
        self._texts = {item["name"] for item in described["inputs"] if item["dtype"] == "STRING"}
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self.inputs]
        if missing or unknown:
            raise ValueError(
                f"onnx: expected the inputs {', '.join(map(repr, self.inputs))}, got "
                f"{', '.join(map(repr, inputs)) or 'none'}"
            )
        values: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        key: list[Hashable] = []
        for name in self.inputs:
            value = inputs[name]
            if name in self._texts:
                elements, lengths = _texts(name, value)
                key.append((tuple(elements), tuple(lengths)))
                values[name] = value
                continue
            tensor = value if isinstance(value, Tensor) else _core.asarray(value)
            shape = tuple(tensor.shape)
            if name in self._known:
                values[name] = tensor
                key.append((shape, str(tensor.dtype), str(tensor.tolist())))
            else:
                tensors[name] = tensor
                key.append(shape)
        results = self._program(tuple(key), values, tensors)(*tensors.values())
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(self.outputs, results, strict=True))

    def _program(
        self, key: Hashable, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Program:
        program = self._programs.pop(key, None)
        if program is None:
            shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
            program = load(self._source, shapes=shapes, values=values, passes=self._passes)
        self._programs[key] = program
        if len(self._programs) > _MAX_PROGRAMS:
            self._programs.popitem(last=False)
        return program
