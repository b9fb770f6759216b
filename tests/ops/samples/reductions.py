# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and sorting."""

import numpy as np
from case import Case, booleans, integers, normal, spread


def _axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def reduced(function):
    return lambda x, axis=None, keepdim=False: np.asarray(
        function(x, axis=_axes(axis), keepdims=keepdim)
    )


def logsumexp(x, axis, keepdims):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def norm(order):
    def reference(x, ord=2.0, axis=None, keepdim=False):
        magnitude = np.abs(x)
        axis = _axes(axis)
        if ord == np.inf:
            return np.asarray(magnitude.max(axis=axis, keepdims=keepdim))
        if ord == -np.inf:
            return np.asarray(magnitude.min(axis=axis, keepdims=keepdim))
        if ord == 0:
            return np.asarray((magnitude != 0).sum(axis=axis, keepdims=keepdim).astype(x.dtype))
        return np.asarray((magnitude**ord).sum(axis=axis, keepdims=keepdim) ** (1 / ord))

    return reference


def var(x, axis=None, correction=0.0, keepdim=False):
    return np.asarray(np.var(x, axis=_axes(axis), ddof=correction, keepdims=keepdim))


def along(function):
    return lambda x, axis=-1: function(x, axis=axis)


def sorted_with_indices(x, axis=-1, descending=False):
    # Stable and descending: sort the reversed sequence, then reverse the result and its positions.
    if not descending:
        order = np.argsort(x, axis=axis, kind="stable")
    else:
        order = (
            x.shape[axis]
            - 1
            - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        )
    return np.take_along_axis(x, order, axis), order


def topk(x, count, axis=-1, largest=True):
    values, order = sorted_with_indices(x, axis, largest)
    return np.take(values, range(count), axis), np.take(order, range(count), axis)


FUNCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "logsumexp": logsumexp,
}
_forms = [
    ("all", (), {}),
    ("axis", (1,), {}),
    ("axes", ([0, -1],), {}),
    ("keepdim", (), {"axis": [1], "keepdim": True}),
]
_ties = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [5.0, 1.0, 5.0]])
_zeros = np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [4.0, 5.0, 6.0]])
_nan = np.array([[1.0, np.nan, 3.0], [2.0, 0.0, 1.0]])

CASES = [
    *(
        Case(name, (spread(2, 3, 4), *args), kwargs, reduced(f), label=label, rtol=1e-11)
        for name, f in FUNCTIONS.items()
        for label, args, kwargs in _forms
    ),
    *(
        Case(name, (spread(2, 3)[0],), reference=reduced(f), label="vector")
        for name, f in FUNCTIONS.items()
    ),
    *(
        Case(name, (booleans(3, 4), 1), reference=reduced(f))
        for name, f in (("any", np.any), ("all", np.all))
    ),
    Case(
        "sum", (integers(0, 9, 3, 4, dtype=np.int32), 0), reference=reduced(np.sum), label="int32"
    ),
    Case("sum", (booleans(3, 4),), reference=reduced(np.sum), label="bool"),
    Case("mean", (integers(0, 9, 3, 4), 0), reference=reduced(np.mean), label="int"),
    Case(
        "prod",
        (_zeros, 1),
        reference=reduced(np.prod),
        label="zeros",
    ),
    *(
        Case("prod", (np.array(x), *args), reference=reduced(np.prod), label=f"zeros in {label}")
        for label, x, args in (
            ("one", [0.0, 2.0, 3.0], ()),
            ("two", [0.0, 0.0, 3.0], ()),
            ("three", [0.0, 2.0, 0.0, 0.0], ()),
            ("all axes", [[1.0, 0.0, 3.0], [4.0, 5.0, 6.0]], ()),
            ("columns", _zeros, (0, True)),
            ("outer axes", np.stack([_zeros, _zeros + 1]), ([0, 2],)),
        )
    ),
    Case(
        "max",
        (_nan, 1),
        reference=reduced(np.max),
        label="nan",
        grad=(),
        why="differences with NaN are NaN",
    ),
    Case(
        "min",
        (_nan, 1),
        reference=reduced(np.min),
        label="nan",
        grad=(),
        why="differences with NaN are NaN",
    ),
    Case("max", (integers(-9, 9, 3, 4, dtype=np.int8), 1), reference=reduced(np.max), label="int8"),
    Case("sum", (np.zeros((0, 3)), 0), reference=reduced(np.sum), label="empty"),
    Case("prod", (np.zeros((0, 3)), 0), reference=reduced(np.prod), label="empty"),
    Case(
        "count_nonzero",
        (integers(0, 2, 3, 4), 1),
        reference=lambda x, a: np.count_nonzero(x, axis=a),
    ),
    Case(
        "argmax",
        (_ties, 1),
        reference=lambda x, a: np.argmax(x, a),
        grad=(),
        why="its results are positions",
    ),
    Case(
        "argmin",
        (_ties, 0),
        reference=lambda x, a: np.argmin(x, a),
        grad=(),
        why="its results are positions",
    ),
    Case(
        "argmax",
        (_nan,),
        reference=lambda x: np.asarray(np.argmax(x)),
        grad=(),
        why="its results are positions",
        label="nan",
    ),
    Case(
        "argmin",
        (_nan, 1, True),
        reference=lambda x, a, k: np.argmin(x, a, keepdims=k),
        grad=(),
        why="its results are positions",
        label="nan",
    ),
    *(
        Case(name, (normal(3, 4), *args), reference=f, label=label)
        for name, f in (("var", var), ("std", lambda *a, **k: np.sqrt(var(*a, **k))))
        for label, args in (("all", ()), ("axis", (1,)), ("sample", (0, 1.0, True)))
    ),
    *(
        Case(
            "norm",
            (spread(3, 4) + 0.013, float(order), *args),
            reference=norm(order),
            grad=() if order == 0 else None,
            why="it is a step function" if order == 0 else "",
            label=f"{order}-{len(args)}",
            rtol=1e-10,
        )
        for order in (2, 1, 3, 0, np.inf, -np.inf)
        for args in ((), (1, True))
    ),
    Case("cumsum", (normal(3, 4),), reference=along(np.cumsum)),
    Case(
        "cumsum",
        (normal(3, 4), 0, True),
        label="reverse",
        reference=lambda x, axis, r: np.flip(np.cumsum(np.flip(x, axis), axis), axis),
    ),
    Case(
        "cumsum",
        (integers(0, 9, 3, 4, dtype=np.int32), 0),
        reference=along(np.cumsum),
        label="int32",
    ),
    Case("cumprod", (normal(3, 4, low=0.5, high=2), 1), reference=along(np.cumprod)),
    Case("cumprod", (_zeros, 1), reference=along(np.cumprod), label="zeros"),
    Case("cumprod", (_zeros, 0), reference=along(np.cumprod), label="zeros in columns"),
    Case("diff", (normal(3, 4),), reference=along(lambda x, axis: np.diff(x, axis=axis))),
    *(
        Case(
            "sort_with_indices",
            (x, *args),
            reference=sorted_with_indices,
            label=label,
            grad=() if why else None,
            why=why,
        )
        for label, x, args, why in (
            ("rows", spread(3, 5), (), ""),
            ("columns", spread(3, 5), (0,), ""),
            ("descending", spread(3, 5), (1, True), ""),
            ("ties", _ties, (1,), "steps change the order of equal elements"),
            ("descending ties", _ties, (1, True), "steps change the order of equal elements"),
            ("nan", _nan, (1,), "differences with NaN are NaN"),
        )
    ),
    Case("sort", (spread(3, 5), 0), reference=along(np.sort)),
    Case(
        "argsort",
        (spread(3, 5),),
        reference=along(np.argsort),
        grad=(),
        why="its results are positions",
    ),
    Case("topk", (spread(3, 5), 2), reference=topk),
    Case("topk", (spread(3, 5), 2, 0, False), reference=topk, label="smallest"),
    Case(
        "searchsorted",
        (np.array([1.0, 3.0, 3.0, 7.0]), np.array([[0.0, 3.0], [5.0, 9.0]])),
        reference=np.searchsorted,
        grad=(),
        why="its results are positions",
    ),
    Case(
        "searchsorted",
        (np.array([1.0, 3.0, 3.0, 7.0]), np.array([0.0, 3.0, 5.0, 9.0]), True),
        grad=(),
        why="its results are positions",
        reference=lambda s, v, r: np.searchsorted(s, v, side="right"),
        label="right",
    ),
]
