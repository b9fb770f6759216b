# SPDX-License-Identifier: Apache-2.0
"""Gradients in float64 against finite differences along random directions, of both orders."""

from __future__ import annotations

import numpy as np
import tenon

from .arrays import FLOATS, Written, dtype_name
from .call import PRELUDE, SEED, evaluate, results_of
from .report import mismatch

# Relative to the size of the derivatives; differences of float64 keep half of their digits.
_STEPS = (1e-5, 1e-4, 1e-6)
_RELATIVE, _ABSOLUTE = 2e-4, 1e-7
# Kinks: one-sided differences that are this far apart are not compared.
_KINK = 1e-3
_MOST_ELEMENTS = 400
# Inputs next to which a step is neither lost nor everything.
_LEAST, _MOST = 1e-3, 1e3


class Function:
    """A call as a function of its floating tensors, contracted with fixed weights to one number."""

    def __init__(self, call, rng):
        self.call = call.map(lambda a: a.with_dtype("float64") if a.dtype in FLOATS else a)
        self.inputs = [
            (name, index, array)
            for name, index, array in self.call.arrays()
            if array.dtype == "float64"
        ]
        self.values = [array.values for _, _, array in self.inputs]
        self.rng, self.weights = rng, None

    def suits(self):
        """Whether differences mean something: few numbers, of the size of one."""
        count = sum(v.size for v in self.values)
        sizes = np.concatenate([np.abs(v.reshape(-1)) for v in self.values] or [np.zeros(0)])
        sizes = sizes[sizes != 0]
        return 0 < count <= _MOST_ELEMENTS and bool(((sizes > _LEAST) & (sizes < _MOST)).all())

    def text(self):
        """The call with its floating tensors replaced by x0, x1, ..."""
        call = self.call
        for i, (name, index, array) in enumerate(self.inputs):
            call = call.with_array(name, index, Written(array, f"x{i}"))
        return call.text()

    def results(self, tensors):
        if self.call.operator.is_random:
            tenon.manual_seed(SEED)
        names = {f"x{i}": x for i, x in enumerate(tensors)}
        return [r for r in results_of(evaluate(self.text(), names)) if dtype_name(r) == "float64"]

    def tensors(self, values=None):
        """Recording tensors in the layouts of the call."""
        values = self.values if values is None else values
        return [
            evaluate(array.with_values(v).text()).requires_grad_()
            for (_, _, array), v in zip(self.inputs, values)
        ]

    def contracted(self, results):
        """The sum of all results that have gradients, times weights."""
        if self.weights is None:
            self.weights = [tenon.tensor(self.rng.standard_normal(r.shape)) for r in results]
        return sum((r * w).sum() for r, w in zip(results, self.weights))

    def smooth_results(self, tensors):
        return [r for r in self.results(tensors) if r.requires_grad]

    def value(self, values):
        results = self.smooth_results(self.tensors(values))
        if self.weights and [w.shape for w in self.weights] != [r.shape for r in results]:
            return None  # the shape depends on data
        return float(self.contracted(results).item()) if results else None

    def slope(self, values, direction, create_graph=False):
        """The derivative along a direction, from the gradients."""
        tensors = self.tensors(values)
        results = self.smooth_results(tensors)
        if not results:
            return None
        found = tenon.grad(
            self.contracted(results), tensors, create_graph=create_graph, allow_unused=True
        )
        total, seen = 0.0, False
        for g, v in zip(found, direction):
            if g is not None:
                total, seen = total + (g * tenon.tensor(v)).sum(), True
        return (total, tensors) if seen else (tenon.tensor(0.0, dtype="float64"), tensors)


def _differentiate(function, values, direction):
    """(central difference, distance of one-sided ones) at the best step; None at a kink, or next to arguments
    that are refused."""
    try:
        return _differences(function, values, direction)
    except (ValueError, IndexError):
        return None


def _differences(function, values, direction):
    centre = function(values)
    if centre is None or not np.isfinite(centre):
        return None
    best = None
    for step in _STEPS:
        above = function([v + step * d for v, d in zip(values, direction)])
        below = function([v - step * d for v, d in zip(values, direction)])
        if above is None or below is None:
            return None
        left, right = (centre - below) / step, (above - centre) / step
        if not np.isfinite(left + right):
            return None
        slope, apart = (left + right) / 2, abs(left - right)
        if best is None or apart < best[1]:
            best = slope, apart
    scale = max(1.0, abs(best[0]), abs(centre))
    return None if best[1] > _KINK * scale else (best[0], scale)


def _compared(oracle, f, values, direction, slope, function, script):
    difference = _differentiate(function, values, direction)
    if difference is None:
        return
    expected, scale = difference
    if not abs(slope - expected) <= _RELATIVE * scale + _ABSOLUTE:
        # Differences that do not agree with each other say nothing.
        again = _differentiate(function, values, [d * 0.37 for d in direction])
        if again is None or abs(again[0] / 0.37 - expected) > _RELATIVE * scale:
            return
        text = f"derivative {slope!r} instead of {expected!r} by differences"
        yield mismatch(oracle, f.call, text, script)


def _prepared(call, rng):
    if call.operator.is_random and call.op != "dropout":
        return None
    if not call.operator.has_float64:
        return None
    f = Function(call, rng)
    if not f.inputs or not f.suits():
        return None
    return f


def _direction(f, rng):
    return [rng.standard_normal(v.shape) for v in f.values]


def _script(f, second):
    """A program that prints the gradients."""
    makes = "; ".join(
        f"x{i} = {array.text()}.requires_grad_()" for i, (_, _, array) in enumerate(f.inputs)
    )
    names = ", ".join(f"x{i}" for i in range(len(f.inputs)))
    total = f"r = {f.text()}; r = r[0] if isinstance(r, (list, tuple)) else r"
    grad = f"g = tenon.grad(r.sum(), [{names}], create_graph={second}, allow_unused=True)"
    square = "sum((v * v).sum() for v in g if v is not None)"
    again = f"; print(tenon.grad({square}, [{names}], allow_unused=True))"
    return f"{PRELUDE}; {makes}; {total}; {grad}; print(g){again if second else ''}"


def _attempt(oracle, f, run, script):
    """What `run` gives; a refusal to differentiate is None, anything else a mismatch."""
    try:
        return run(), None
    except NotImplementedError:
        return None, None
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]} instead of a gradient"
        return None, mismatch(oracle, f.call, text, script)


def gradient(call, results, rng):
    """First derivatives against differences of the function."""
    f = _prepared(call, rng)
    if f is None:
        return
    direction, script = _direction(f, rng), _script(f, False)
    slope, failed = _attempt("gradient", f, lambda: f.slope(f.values, direction), script)
    if failed:
        yield failed
    if slope is None:
        return
    yield from _compared(
        "gradient", f, f.values, direction, float(slope[0].item()), f.value, script
    )


def second_gradient(call, results, rng):
    """Second derivatives against differences of the first."""
    f = _prepared(call, rng)
    if f is None:
        return
    first, direction = _direction(f, rng), _direction(f, rng)
    script = _script(f, True)

    def second():
        slope = f.slope(f.values, first, create_graph=True)
        if slope is None or not slope[0].requires_grad:
            return None
        found = tenon.grad(slope[0], slope[1], allow_unused=True)
        parts = [
            float((g * tenon.tensor(v)).sum().item())
            for g, v in zip(found, direction)
            if g is not None
        ]
        return sum(parts) if parts else 0.0

    slope, failed = _attempt("second_gradient", f, second, script)
    if failed:
        yield failed
    if slope is None:
        return

    def once(values):
        result = f.slope(values, first)
        return None if result is None else float(result[0].item())

    yield from _compared("second_gradient", f, f.values, direction, slope, once, script)
