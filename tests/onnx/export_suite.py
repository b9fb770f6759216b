#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of all operators, exported, checked by `onnx.checker` and run by ONNX Runtime.

    export_suite.py [--opset N ...] [--dtype float32 ...] [-v] [NAME ...]

A sample is *equal* (its results are within tolerance), *refused* (by the exporter, by its text), *not run* (ONNX Runtime has no
kernel for a node's dtype) or *wrong*. Needs the packages onnx and onnxruntime, and TENON_BUILD_DIR as tests/ops.
"""

import argparse
import collections
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))

import numpy as np
import onnx
import onnxruntime
import tenon
import tenon.onnx
from case import map_arrays, results_of
from samples import CASES

TOLERANCE = {"float64": 1e-6, "float32": 2e-5, "float16": 2e-2}


class Sample:
    """A case's call as a function of its tensors, all floats (or integers) in one dtype."""

    def __init__(self, case, dtype):
        self.case, self.tensors = case, []

        def place(array):
            if dtype.startswith("float") == (array.dtype.kind == "f"):
                array = array.astype(dtype) if array.dtype.kind in "fi" else array
            elif dtype == "bool" and array.dtype.kind == "f":
                array = array > 0
            elif dtype == "int64" and array.dtype.kind == "f":
                array = np.round(array * 3).astype(dtype)
            self.tensors.append(tenon.tensor(np.ascontiguousarray(array).reshape(array.shape)))
            return _Place(len(self.tensors) - 1)

        self.args = [map_arrays(place, value) for value in case.args]
        self.keywords = {name: map_arrays(place, value) for name, value in case.kwargs.items()}

    def __call__(self, *tensors):
        def fill(value):
            if isinstance(value, _Place):
                return tensors[value.index]
            if isinstance(value, list):
                return [fill(each) for each in value]
            if isinstance(value, str) and isinstance(getattr(tenon, value, None), tenon.dtype):
                return getattr(tenon, value)
            return value

        keywords = {name: fill(value) for name, value in self.keywords.items()}
        made = getattr(tenon, self.case.op)(*(fill(value) for value in self.args), **keywords)
        return [each for each in results_of(made) if isinstance(each, tenon.Tensor)]


class _Place:
    def __init__(self, index):
        self.index = index


def run(case, dtype, opset, path):
    """What became of the sample, and why; None where it is no call for the dtype, or can be no program."""
    sample = Sample(case, dtype)
    try:
        want = sample(*sample.tensors)
        program = tenon.export(sample, tuple(sample.tensors))
    except Exception:
        return None
    if not want or any(
        tensor.dtype.name.startswith("complex") for tensor in (*want, *sample.tensors)
    ):
        return None
    try:
        tenon.onnx.export(program, path, opset=opset)
    except NotImplementedError as refusal:
        return "refused", str(refusal)
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:
        return "wrong", f"checker: {error}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        feeds = dict(zip(program.input_names, (t.numpy() for t in sample.tensors), strict=True))
        known = {each.name for each in session.get_inputs()}
        got = session.run(None, {name: array for name, array in feeds.items() if name in known})
    except Exception as error:
        kind = "not run" if "NOT_IMPLEMENTED" in str(error) else "wrong"
        return kind, f"runtime: {error}"
    random = any(tag in case.op for tag in ("rand", "dropout", "bernoulli", "multinomial"))
    for ours, theirs in zip(want, got, strict=False):
        array = ours.numpy()
        if array.shape != theirs.shape or array.dtype != theirs.dtype:
            return "wrong", f"expected {array.dtype}{array.shape}, got {theirs.dtype}{theirs.shape}"
        slack = TOLERANCE.get(array.dtype.name, 0)
        if not random and not np.allclose(theirs, array, rtol=slack, atol=slack, equal_nan=True):
            return "wrong", f"expected {array.ravel()[:6]}, got {theirs.ravel()[:6]}"
    return "equal", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opset", type=int, nargs="*", default=[18, 20, 23])
    parser.add_argument("--dtype", nargs="*", default=["float32", "int64", "bool"])
    parser.add_argument("-v", action="store_true", help="say why samples are refused")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for opset in options.opset:
            for dtype in options.dtype:
                counts, operators = collections.Counter(), collections.defaultdict(set)
                for case in CASES:
                    if options.names and case.op not in options.names:
                        continue
                    outcome = run(case, dtype, opset, f"{folder}/model.onnx")
                    if outcome is None:
                        continue
                    counts[outcome[0]] += 1
                    operators[outcome[0]].add(case.op)
                    if outcome[0] == "wrong" or options.v and outcome[0] != "equal":
                        print(f"{opset} {dtype} {outcome[0]}: {case}: {outcome[1][-260:]}")
                line = ", ".join(
                    f"{counts[k]} {k} ({len(operators[k])} operators)" for k in sorted(counts)
                )
                print(f"opset {opset}, {dtype}: {line}", flush=True)
                failed += counts["wrong"]
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
