# SPDX-License-Identifier: Apache-2.0
"""ONNX's own suite of cases for backends, `onnx.backend.test`: what passes, what is refused and why, what is wrong.

    PYTHONPATH=build/release/python PYTHON_WITH_ONNX tests/onnx/backend_suite.py [--kind node] [-k TEXT] [--list refused]

Needs the packages `onnx` and `numpy`. An operator whose shape, axes or rounds are inputs of the case is loaded with those
inputs fixed (`values=`), and counted apart. Fails if an answer is wrong, or if fewer pass than --least.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tenon
import tenon.onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

OPEN = "known when the model is loaded"
BITS = {  # dtypes that NumPy does not have, by the name that ml_dtypes gives them
    "bfloat16": ("bfloat16", np.uint16),
    "float8_e4m3fn": ("float8_e4m3", np.uint8),
    "float8_e5m2": ("float8_e5m2", np.uint8),
    "float8_e4m3fnuz": ("float8_e4m3fnuz", np.uint8),
    "float8_e5m2fnuz": ("float8_e5m2fnuz", np.uint8),
    "float8_e8m0fnu": ("float8_e8m0", np.uint8),
}
# Elements of less than a byte, and what carries them.
NARROW = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}
FLOAT4 = "float4_e2m1fn"

# The reference rounds numbers of 16 bits after each step, kernels once: two units in the last place apart.
UNITS = {"float16": 2.0**-9, "bfloat16": 2.0**-6}

# Their expected values are noise of float32 where the exact one is 0.
NOISE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}


class CaseRefused(Exception):
    """The case has data that no tensor holds."""


def plain(item: Any) -> Any:
    """An array, where the case has a message of ONNX's."""
    if isinstance(item, list):
        return [plain(each) for each in item]
    return numpy_helper.to_array(item) if hasattr(item, "data_type") else item


def completed(case: Any) -> Any:
    """The case with its model and data, which are files for all kinds but "node"."""
    if case.model is not None:
        return case
    if case.model_dir is not None:
        folder = Path(case.model_dir)
        sets = [
            (
                [read(part / f"input_{i}.pb") for i in range(count(part, "input"))],
                [read(part / f"output_{i}.pb") for i in range(count(part, "output"))],
            )
            for part in sorted(folder.glob("test_data_set_*"))
        ]
        return dataclasses.replace(case, model=onnx.load(folder / "model.onnx"), data_sets=sets)
    path = Path(onnx.__file__).parents[1] / case.url  # a model without weights, in the package
    model = onnx.load(path)
    initialized = {item.name for item in model.graph.initializer}
    inputs = []
    for item in model.graph.input:
        if item.name not in initialized:
            shape = [size.dim_value or 1 for size in item.type.tensor_type.shape.dim]
            total = int(np.prod(shape))
            inputs.append((np.arange(total).reshape(shape) / total).astype(np.float32))
    outputs = [
        read(path.with_name(f"{path.stem}_output_{i}.pb")) for i in range(len(model.graph.output))
    ]
    return dataclasses.replace(case, model=model, data_sets=[(inputs, outputs)])


def count(folder: Path, kind: str) -> int:
    return len(list(folder.glob(f"{kind}_*.pb")))


def read(path: Path) -> Any:
    """A tensor, or a sequence of them, of a file."""
    data = path.read_bytes()
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(data)
        if tensor.data_type:
            return numpy_helper.to_array(tensor)
    except Exception:  # of another message
        pass
    sequence = onnx.SequenceProto()
    sequence.ParseFromString(data)
    return numpy_helper.to_list(sequence)


def to_tensor(array: Any) -> Any:
    """A tensor, or a list of them, of the case's data."""
    array = plain(array)
    if isinstance(array, list):
        if not array:
            raise CaseRefused("an empty sequence as input")
        return [to_tensor(item) for item in array]
    if array is None:
        raise CaseRefused("an empty optional as input")
    array = np.asarray(array)
    if array.dtype.name in NARROW:
        array = array.astype(NARROW[array.dtype.name])
    if array.dtype.name == FLOAT4:
        wide = tenon.tensor(np.ascontiguousarray(array.astype(np.float32)).reshape(array.shape))
        return tenon.cast(wide, tenon.float8_e4m3)
    if array.dtype.name in BITS:
        name, bits = BITS[array.dtype.name]
        flat = tenon.tensor(np.ascontiguousarray(array).reshape(-1).view(bits))
        return tenon.reshape(tenon.bitcast(flat, getattr(tenon, name)), list(array.shape))
    if array.dtype.kind in "OUS":
        return texts_of(array)
    if array.dtype.kind not in "biufc":
        raise CaseRefused(f"data of {array.dtype.name}")
    return tenon.tensor(np.ascontiguousarray(array).reshape(array.shape))


class Text(list):
    """Nested lists of texts, and the shape."""

    shape: tuple[int, ...] = ()
    whole: Any = None


def texts_of(array: np.ndarray) -> Text:
    """A text's own type, as lists of tensors are sequences."""
    plain = np.vectorize(
        lambda item: item.decode() if isinstance(item, bytes) else str(item), otypes=[object]
    )(array)
    text = Text()
    text.shape, text.whole = array.shape, plain.tolist()
    return text


def shape_of(value: Any) -> Any:
    if isinstance(value, list) and not isinstance(value, Text):
        return [list(item.shape) for item in value]
    return list(value.shape)


def load(case: Any, names: list[str], inputs: list[Any]) -> tuple[Any, list[str]]:
    """The program, and the inputs that were fixed: none, those of integers, or all."""
    data = case.model.SerializeToString()
    shapes = {name: shape_of(value) for name, value in zip(names, inputs, strict=True)}
    integers = [
        name
        for name, value in zip(names, inputs, strict=True)
        if not isinstance(value, list) and value.dtype.name in ("int32", "int64", "bool", "uint8")
    ]
    tensors = [
        name for name, value in zip(names, inputs, strict=True) if not isinstance(value, list)
    ]
    texts = [name for name, value in zip(names, inputs, strict=True) if isinstance(value, Text)]
    error: Exception | None = None
    for fixed in ([], integers, tensors):
        fixed = [*fixed, *(name for name in texts if name not in fixed)]
        values = {
            name: value.whole if isinstance(value, Text) else value
            for name, value in zip(names, inputs, strict=True)
            if name in fixed
        }
        open_shapes = {name: shape for name, shape in shapes.items() if name not in fixed}
        try:
            return tenon.onnx.load(data, shapes=open_shapes, values=values), fixed
        except NotImplementedError as problem:
            if OPEN not in str(problem):
                raise
            error = problem
    assert error is not None
    raise error


def difference(actual: Any, expected: Any, case: Any) -> str:
    """What is wrong with a result; empty: nothing."""
    expected = plain(expected)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"expected a sequence of {len(expected)}"
        return next(
            filter(None, (difference(a, e, case) for a, e in zip(actual, expected, strict=True))),
            "",
        )
    expected = np.asarray(expected)
    if expected.dtype.kind in "OUS":
        wanted = texts_of(expected).whole
        return "" if actual == wanted else f"expected {wanted}, got {actual}"
    if expected.dtype.name in NARROW:
        expected = expected.astype(NARROW[expected.dtype.name])
    name = BITS.get(expected.dtype.name, (expected.dtype.name,))[0]
    if name == FLOAT4:
        name = "float8_e4m3"
    if actual.dtype.name != name:
        return f"expected {name}, got {actual.dtype.name}"
    if tuple(actual.shape) != expected.shape:
        return f"expected shape {expected.shape}, got {tuple(actual.shape)}"
    if expected.dtype.name in BITS or expected.dtype.name == FLOAT4:
        got, wanted = tenon.cast(actual, tenon.float32).numpy(), expected.astype(np.float32)
    else:
        got, wanted = actual.numpy(), expected
    if got.dtype.kind in "biu":
        bad = np.argwhere(got != wanted)
    else:
        rtol, atol = max(case.rtol, UNITS.get(name, 0.0)), NOISE.get(case.name, case.atol)
        bad = np.argwhere(~np.isclose(got, wanted, rtol=rtol, atol=atol, equal_nan=True))
    if not len(bad):
        return ""
    at = tuple(bad[0])
    return (
        f"{len(bad)} of {wanted.size} elements, first at {at}: expected {wanted[at]}, got {got[at]}"
    )


def run(case: Any) -> tuple[str, str]:
    """(verdict, reason): passed, fixed, refused or wrong."""
    case = completed(case)
    initialized = {item.name for item in case.model.graph.initializer}
    names = [item.name for item in case.model.graph.input if item.name not in initialized]
    for inputs, outputs in case.data_sets:
        try:
            given = [to_tensor(item) for item in inputs]
            program, fixed = load(case, names, given)
        except (CaseRefused, NotImplementedError) as problem:
            return "refused", str(problem)
        except Exception as problem:
            return "failed", f"{type(problem).__name__}: {problem}"
        try:
            results = program(*[v for n, v in zip(names, given, strict=True) if n not in fixed])
        except Exception as problem:
            return "failed", f"when it runs: {type(problem).__name__}: {problem}"
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(outputs):
            return "wrong", f"expected {len(outputs)} results, got {len(results)}"
        for index, (actual, expected) in enumerate(zip(results, outputs, strict=True)):
            if wrong := difference(actual, expected, case):
                return "wrong", f"result {index}: {wrong}"
    return ("fixed" if fixed else "passed"), ""


def summary(reason: str) -> str:
    """A reason without names and numbers, for counting."""
    reason = reason.replace("\n", " ")
    return re.sub(r"\d+", "N", re.sub(r'[`"][^`"]*[`"]', "_", reason))[:150]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kind", default="node", help="node, or simple,pytorch-converted,pytorch-operator,real"
    )
    parser.add_argument("-k", default="", help="only cases whose name has this text")
    parser.add_argument("--list", default="wrong,failed", help="verdicts whose cases are listed")
    parser.add_argument("--least", type=int, default=0, help="fail if fewer cases pass")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    kinds = options.kind.split(",")
    cases = [
        case for kind in kinds for case in load_model_tests(kind=kind) if options.k in case.name
    ]
    verdicts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for case in cases:
        verdict, reason = run(case)
        verdicts[verdict] += 1
        if verdict not in ("passed", "fixed"):
            reasons[f"{verdict}: {summary(reason)}"] += 1
        if verdict in options.list.split(","):
            print(f"{verdict}  {case.name}: {reason}")
    print()
    for reason, count in reasons.most_common(60):
        print(f"{count:5}  {reason}")
    passed = verdicts["passed"] + verdicts["fixed"]
    print(
        f"\n{len(cases)} cases: {passed} passed ({verdicts['fixed']} with inputs fixed), ", end=""
    )
    print(f"{verdicts['refused']} refused, {verdicts['failed']} failed, {verdicts['wrong']} wrong")
    return 1 if verdicts["wrong"] or passed < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
