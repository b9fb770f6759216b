# SPDX-License-Identifier: Apache-2.0
"""A model of ONNX in a predictor, beside ONNX Runtime and beside what the model was made from, on two batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import tenon
import tenon.onnx

# Of the largest element of a result. Networks of float32 with a hundred layers end 1e-7 to 1e-5 of it apart; what is wrong ends far
# beyond. Results that other inputs hardly change have to be closer: within HUNDREDTH of that change, down to the ROUNDING of results.
TOLERANCE = 1e-4
HUNDREDTH, ROUNDING = 1e-2, 4e-6
OPEN = {"min": 1, "max": 64}  # of the sizes that a model leaves open

Feeds = dict[str, Any]
Results = list[np.ndarray]


class Case(NamedTuple):
    """A model of ONNX, and how it is looked at."""

    path: Path
    # Inputs by their names for the sizes of ONNX Runtime's description, a text or None where a size is open; the second argument
    # is the batch, 0 or 1.
    feeds: Callable[[dict[str, list[Any]], int], Feeds]
    # What the origin computes of these, by the place of the result; results that it has no word for are None.
    origin: Callable[[Feeds], list[Any]]
    tolerance: float = TOLERANCE  # between us and ONNX Runtime
    origin_tolerance: float = TOLERANCE  # between us and the origin
    noise: tuple[str, ...] = ()  # results that two right libraries do not share


def distance(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference of two results, in parts of the largest element; ValueError where there is no such number."""
    if got.shape != want.shape:
        raise ValueError(f"expected the shape {want.shape}, got {got.shape}")
    if want.dtype.kind != "f" or got.dtype.kind != "f":
        return float((got != want).any())
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        raise ValueError("NaN elsewhere")
    infinite = np.isinf(want)
    if not np.array_equal(got[infinite], want[infinite]) or np.isinf(got[~infinite]).any():
        raise ValueError("infinities elsewhere")
    finite = np.isfinite(want)
    if not finite.any():
        return 0.0
    apart = np.abs(got[finite].astype(np.float64) - want[finite].astype(np.float64))
    return float(apart.max() / (np.abs(want[finite]).max() or 1.0))


def flat(values: list[Any]) -> Results:
    """The tensors of results and of the sequences among them."""
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [np.asarray(each) for values in lists for each in values]


def change(results: list[Results]) -> float:
    """How far the results of two rows of a batch are apart, in parts of the largest element: the most that a result has of it."""
    found = 0.0
    for result in results[0]:
        if result.dtype.kind in "iubO" and result.ndim and len(result) > 1:
            found = max(found, float((result != result[:1]).any()))
        if result.dtype.kind == "f" and result.ndim and len(result) > 1 and result.size:
            apart = np.nanmax(np.abs(result - result[:1]))
            found = max(found, float(apart / (np.nanmax(np.abs(result)) or 1.0)))
    return found


def run_texts(case: Case, batches: list[Feeds]) -> tuple[list[list[Any]], str]:
    """What a predictor does not do: inputs or results of text."""
    runner = tenon.onnx.Runner(str(case.path))
    return [list(runner(feeds).values()) for feeds in batches], "Runner"


def predict(
    case: Case, shapes: dict[str, list[Any]], batches: list[Feeds]
) -> tuple[list[list[Any]], str]:
    """Our results for each batch, and whether one program serves all sizes. Each batch runs twice: first its steps, then what is joined."""
    sizes, open_shapes = {}, {}
    for name, shape in shapes.items():
        if any(size is None for size in shape):
            open_shapes[name] = [
                size if isinstance(size, int) else tenon.Dim(f"{name}_{i}", **OPEN)
                for i, size in enumerate(shape)
            ]
        else:
            sizes.update({s: tenon.Dim(s, **OPEN) for s in shape if isinstance(s, str)})
    predictor = tenon.inference.Predictor(case.path, sizes=sizes, shapes=open_shapes)
    results = []
    for feeds in batches:
        predictor.run(feeds)
        results.append([each.numpy() for each in predictor.run(feeds).values()])
    each_size = "program of its own" in predictor.explain()
    has_open = any(not isinstance(size, int) for shape in shapes.values() for size in shape)
    return (
        results,
        "a program for each size" if each_size else "one program" if has_open else "one size",
    )


def compare(case: Case, row: dict[str, Any]) -> None:
    """Fills in a row: its state, and the differences or the reason. The caller catches what it raises."""
    row["state"] = "not run"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(str(case.path), options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    assert not set(case.noise) - set(names), f"expected results among {names}, got {case.noise}"
    shapes = {each.name: list(each.shape) for each in session.get_inputs()}
    is_open = any(not isinstance(size, int) for shape in shapes.values() for size in shape)
    batches = [case.feeds(shapes, i) for i in range(2 if is_open else 1)]
    want = [flat(session.run(None, feeds)) for feeds in batches]
    if len(want[0]) > len(names):  # a sequence, of which the predictor has a result for each tensor
        names = [str(i) for i in range(len(want[0]))]
    del session
    origin = [case.origin(feeds) for feeds in batches]
    row["change"] = change(want)
    if 0 < row["change"] < ROUNDING:
        raise ValueError(f"its results change by {row['change']:.0e} with its inputs: by rounding")

    row["state"] = "refused"
    began = time.perf_counter()
    arrays = [array for feeds in batches for array in feeds.values()]
    if any(array.dtype.kind in "OU" for array in (*arrays, *want[0])):
        got, row["sizes"] = run_texts(case, batches)
    else:
        got, row["sizes"] = predict(case, shapes, batches)
    row["run_s"] = round(time.perf_counter() - began, 2)

    row["state"] = "wrong"
    ours = theirs = other = 0.0
    for results, wanted, first in zip(got, want, origin, strict=True):
        if len(results) != len(wanted) or len(wanted) != len(first):
            raise ValueError(
                f"{len(results)} results, {len(wanted)} of ONNX Runtime, {len(first)} of the origin"
            )
        for name, result, peer, source in zip(names, results, wanted, first, strict=True):
            if name in case.noise:
                continue
            array = np.array(result.numpy() if isinstance(result, tenon.Tensor) else result)
            if peer.dtype != object and array.dtype != peer.dtype:
                raise ValueError(f"{name}: expected {peer.dtype}, got {array.dtype}")
            ours = max(ours, distance(array, peer))
            if source is not None:
                source = np.asarray(source).reshape(np.shape(peer))
                theirs = max(theirs, distance(array, source))
                other = max(other, distance(peer, source))
    row["difference"], row["origin_difference"], row["peer_origin_difference"] = ours, theirs, other
    closest = max(HUNDREDTH * row["change"], ROUNDING) if row["change"] else np.inf
    # Where ONNX Runtime itself is that far from the origin, the model has changed on its way and says nothing about us.
    if ours > min(case.tolerance, closest):
        row["reason"] = f"{ours:.1e} from ONNX Runtime, {theirs:.1e} from the origin"
    elif theirs > max(min(case.origin_tolerance, closest), 2 * other):
        row["reason"] = f"{theirs:.1e} from the origin, from which ONNX Runtime is {other:.1e}"
    else:
        row["state"] = "agrees"
