# SPDX-License-Identifier: Apache-2.0
"""The rows of memory_bound.py: statements in three libraries, the arrays they name, their results."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

import numpy as np
import tenon

try:
    import torch
except ImportError:
    torch = None

LAYOUTS = {
    "c": "",
    "s": "every second column",
    "t": "transposed",
    "r": "one row",
    "k": "one column",
}


@dataclass
class Case:
    """Statements over the names of `ARRAYS`; NumPy's and PyTorch's where they differ from ours.

    The layout of `x` is that of the row, but for one row or column, which `y` is.
    """

    ours: str
    numpy: str | None = ""
    torch: str | None = ""
    layouts: str = "c"
    result: str = ""  # what to compare, where the statement has no value
    passes: int = 1  # over the inputs
    bound: str = ""  # what it waits for instead of memory, and the best rate in any cache
    at_least: float = 1  # elements
    at_most: float = 1e9

    def statement(self, library: str) -> str | None:
        other = {"tenon": self.ours, "numpy": self.numpy, "torch": self.torch}[library]
        return self.ours if other == "" else other


# PyTorch's copy in rows: contiguous() returns a tensor of one element as it is.
COPIED = "clone({}, memory_format=contiguous_format)"

CASES = {
    "add": Case("x + y", layouts="cstrk"),
    "add to itself": Case("x + x", layouts="t"),
    "add scalar": Case("x + 1.5", layouts="cst"),
    "add in place": Case("add(z, y, out=z)", result="z"),
    "add float64": Case("d + d"),
    "add int64": Case("i + i"),
    "add bfloat16": Case(
        "b + b",
        None,
        bound="rounding, six instructions a register: 27 GB/s",
    ),
    "add float16": Case(
        "h + h",
        bound="conversions, three a register: 48 GB/s",
    ),
    "sqrt": Case(
        "sqrt(x)",
        bound="square roots, sixteen in ten cycles: 47 GB/s",
    ),
    "relu": Case("relu(x)", "maximum(x, 0)", layouts="cs"),
    "less": Case("x < y", layouts="crk"),
    "and": Case("m & m"),
    "where": Case("where(m, x, y)", layouts="cstrk"),
    "where scalar": Case("where(m, x, 0.0)"),
    "clip": Case("clip(x, -1.0, 1.0)", torch="clamp(x, -1.0, 1.0)"),
    "copy": Case("clone(x)", "copy(x)", "clone(contiguous(x))", layouts="c"),
    "copy strided": Case("clone(x)", "x.copy(order='C')", COPIED.format("x"), layouts="st"),
    "copy, transposed int8": Case("clone(u.T)", "u.T.copy(order='C')", COPIED.format("u.T")),
    "copy, transposed float64": Case("clone(d.T)", "d.T.copy(order='C')", COPIED.format("d.T")),
    "copy, axes 0 1 2 to 1 0 2": Case("clone(t3)", "t3.copy(order='C')", COPIED.format("t3")),
    "copy, channels last": Case("clone(t4)", "t4.copy(order='C')", COPIED.format("t4")),
    "fill": Case("full(shape, 1.5)", "full(shape, 1.5, dtype=float32)"),
    "zeros": Case("zeros(shape)", "full(shape, 0.0, dtype=float32)"),
    "arange": Case("arange(count)"),
    "float32 to float64": Case("cast(x, float64)", layouts="cs"),
    "float64 to float32": Case("cast(d, float32)"),
    "float32 to int32": Case("cast(x, int32)"),
    "float32 to int64": Case("cast(x, int64)"),
    "int64 to float32": Case("cast(i, float32)"),
    "uint8 to float32": Case("cast(u, float32)"),
    "float32 to uint8": Case("cast(a, uint8)"),
    "bool to float32": Case("cast(m, float32)"),
    "float32 to bool": Case("cast(x, bool_)"),
    "float32 to bfloat16": Case(
        "cast(x, bfloat16)",
        None,
        bound="rounding, six instructions a register: 57 GB/s",
    ),
    "bfloat16 to float32": Case("cast(b, float32)", None),
    "float32 to float16": Case("cast(x, float16)"),
    "float16 to float32": Case("cast(h, float32)"),
    "concat, axis 0": Case("concat([x, y])", "concatenate([x, y])", "cat([x, y])"),
    "concat, axis 1": Case("concat([x, y], 1)", "concatenate([x, y], 1)", "cat([x, y], 1)"),
    "stack, last axis": Case("stack([x, y], -1)"),
    "tile": Case("tile(x, (2, 2))"),
    "flip": Case("clone(flip(x, [1]))", "x[:, ::-1].copy()", "flip(x, [1])"),
    "sum": Case("x.sum()", layouts="cst"),
    "sum, axis 0": Case("x.sum(0)", layouts="cst"),
    "sum, axis 1": Case("x.sum(1)", layouts="cst"),
    "sum, middle axis": Case("c3.sum(1)"),
    "sum float64": Case("d.sum()"),
    "sum int64": Case("i.sum()"),
    "sum bool": Case("m.sum()"),
    "sum bfloat16": Case("b.sum()", None),
    "mean": Case("x.mean()"),
    "max": Case("x.max()", layouts="cst"),
    "max, axis 0": Case("max(x, 0)", torch="amax(x, 0)"),
    "max, axis 1": Case("max(x, 1)", torch="amax(x, 1)"),
    "max int64": Case("i.max()"),
    "any": Case("f.any()"),
    "all": Case("e.all()"),
    "any, axis 1": Case("f.any(1)"),
    "any float32": Case("o.any()"),
    "count_nonzero": Case("count_nonzero(x)"),
    "argmax": Case("x.argmax()"),
    "argmax, axis 0": Case("x.argmax(0)"),
    "argmax, axis 1": Case("x.argmax(1)"),
    "argmax int64, axis 1": Case("i.argmax(1)"),
    "var": Case("var(x)", torch="var(x, correction=0)", layouts="ct", passes=2),
    "var, axis 0": Case("var(x, 0)", torch="var(x, 0, correction=0)", passes=2),
    "var, axis 1": Case("var(x, 1)", torch="var(x, 1, correction=0)", passes=2),
    "logsumexp, axis 1": Case(
        "logsumexp(x, 1)",
        None,
        layouts="ct",
        bound="exponentials: 10 GB/s",
    ),
    "cumsum, axis 0": Case("cumsum(x, 0)"),
    "cumsum, axis 1": Case(
        "cumsum(x, 1)",
        bound="each addition waits for the one before: 25 GB/s",
    ),
    "cumsum int64": Case(
        "cumsum(i, 1)",
        bound="each addition waits for the one before: 28 GB/s",
    ),
    "index_select, rows": Case("index_select(x, p, 0)", "take(x, p, 0)", "index_select(x, 0, p)"),
    "index_select, columns": Case(
        "index_select(x, q, 1)",
        "take(x, q, 1)",
        "index_select(x, 1, q)",
        bound="a load for each element: 13 GB/s",
    ),
    "index": Case("x[p]"),
    "gather, axis 1": Case(
        "gather(x, g, 1)",
        "take_along_axis(x, g, 1)",
        "gather(x, 1, g)",
        bound="a load for each element: 18 GB/s",
    ),
    "masked_select": Case(
        "x[m]",
        bound="packing of registers, whose lengths decide where the next goes: 52 GB/s",
    ),
    "nonzero": Case(
        "nonzero(m)",
        "argwhere(m)",
        bound="packing of registers, whose lengths decide where the next goes: 28 GB/s",
    ),
    "sort, axis 1": Case(
        "sort_with_indices(x, 1)",
        "argsort(x, 1, kind='stable')",
        "sort(x, dim=1, stable=True)",
        result="[1]",
        at_most=1e6,
        bound="comparisons: 4 GB/s",
    ),
    "sort, axis 1, values alone": Case(
        "sort(x, 1)",
        result="[0]",
        at_most=1e6,
        bound="comparisons: 8 GB/s",
    ),
    "sort, axis 0, values alone": Case(
        "sort(x, 0)",
        result="[0]",
        at_most=1e6,
        bound="comparisons: 7 GB/s",
    ),
    "sort int64, values alone": Case(
        "sort(i, 1)",
        result="[0]",
        at_most=1e6,
        bound="comparisons: 10 GB/s",
    ),
    "topk, axis 1": Case(
        "topk(x, 5, 1)",
        None,
        result="[0]",
        at_least=100,
        at_most=1e6,
        bound="comparisons: 4 GB/s",
    ),
    "softmax": Case(
        "softmax(x, 1)",
        None,
        bound="exponentials: 19 GB/s",
    ),
    "softmax, axis 0": Case(
        "softmax(x, 0)",
        None,
        bound="exponentials: 17 GB/s",
    ),
    "log_softmax": Case(
        "log_softmax(x, 1)",
        None,
        bound="exponentials: 15 GB/s",
    ),
    "softmax, with backward": Case(
        "grad(softmax(r, 1), r, y)",
        None,
        "grad(softmax(r, 1), r, y)",
        result="[0]",
        bound="exponentials: 13 GB/s",
    ),
    "log_softmax, with backward": Case(
        "grad(log_softmax(r, 1), r, y)",
        None,
        "grad(log_softmax(r, 1), r, y)",
        result="[0]",
        bound="exponentials: 11 GB/s",
    ),
    "layer_norm": Case(
        "layer_norm(x, w, v)",
        None,
        "layer_norm(x, columns, w, v)",
        bound="sums and scaling of each row: 34 GB/s",
    ),
    "layer_norm, with backward": Case(
        "grad(layer_norm(r, rw, rv), (r, rw, rv), y)",
        None,
        "grad(layer_norm(r, columns, rw, rv), (r, rw, rv), y)",
        result="[0]",
        at_least=4,
        bound="sums and scaling of each row: 8 GB/s",
    ),
    "rms_norm": Case(
        "rms_norm(x, w, 1e-6)",
        None,
        "rms_norm(x, columns, w, 1e-6)",
    ),
    "batch_norm, images": Case(
        "batch_norm(c4, w4, v4)",
        None,
        "batch_norm(c4, None, None, w4, v4, True)",
        result="[0]",
        at_least=4,
        passes=2,
    ),
    "batch_norm, rows": Case(
        "batch_norm(x, w, v)",
        None,
        "batch_norm(x, None, None, w, v, True)",
        result="[0]",
        at_least=4,
        passes=2,
    ),
    "batch_norm, images, with backward": Case(
        "grad(batch_norm(r4, rw4, rv4)[0], (r4, rw4, rv4), c4)",
        None,
        "grad(batch_norm(r4, None, None, rw4, rv4, True), (r4, rw4, rv4), c4)",
        result="[0]",
        at_least=4,
        bound="sums of two products, and scaling: 11 GB/s",
    ),
    "SGD": Case(
        "sgd_update(z, y, lr=1e-3, out=z)",
        None,
        "aten._fused_sgd_([z], [y], [], lr=1e-3, weight_decay=0.0, "
        "momentum=0.0, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)",
        result="z",
    ),
    "SGD with momentum": Case(
        "momentum_update(z, y, o, lr=1e-3, out=(z, o))",
        None,
        "aten._fused_sgd_([z], [y], [o], lr=1e-3, weight_decay=0.0, momentum=0.9, dampening=0.0, "
        "nesterov=False, maximize=False, is_first_step=False)",
        result="z",
    ),
    "Adam": Case(
        "adam_update(z, y, o, a, step=1, out=(z, o, a))",
        None,
        "aten._fused_adam_([z], [y], [o], [a], [], [step], lr=1e-3, beta1=0.9, beta2=0.999, "
        "weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)",
        result="z",
    ),
    "AdamW": Case(
        "adamw_update(z, y, o, a, step=1, out=(z, o, a))",
        None,
        "aten._fused_adamw_([z], [y], [o], [a], [], [step], lr=1e-3, beta1=0.9, beta2=0.999, "
        "weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)",
        result="z",
    ),
}


def matrix_shape(count: int) -> tuple[int, int]:
    """Rows and columns, as square as decimal sizes allow."""
    rows = max(1, int(count**0.5))
    while count % rows:
        rows -= 1
    return rows, count // rows


@dataclass
class Arrays:
    """The arrays of one row of the table, as NumPy has them, made when they are named."""

    count: int
    layout: str
    made: dict = field(default_factory=dict)

    def get(self, name: str):
        if name not in self.made:
            seed = zlib.crc32(name.encode())  # the same in every process
            self.made[name] = self.make(name, np.random.default_rng(seed))
        return self.made[name]

    def make(self, name: str, rng):
        rows, columns = matrix_shape(self.count)
        y_shape = {"r": (1, columns), "k": (rows, 1)}.get(self.layout, (rows, columns))
        x_shape = {"s": (rows, 2 * columns), "t": (columns, rows)}.get(self.layout, (rows, columns))
        channels = max(1, min(64, rows))
        images = (max(1, rows // channels), channels, columns, 1)

        def normal(*shape):
            return rng.standard_normal(shape, dtype=np.float32)

        makers = {
            "x": lambda: normal(*x_shape),
            "y": lambda: normal(*y_shape),
            "z": lambda: normal(rows, columns),
            "o": lambda: np.zeros((rows, columns), np.float32),
            "a": lambda: np.abs(normal(rows, columns)),
            "d": lambda: rng.standard_normal((rows, columns)),
            "h": lambda: normal(rows, columns).astype(np.float16),
            "b": lambda: normal(rows, columns),
            "i": lambda: rng.integers(0, 1000, (rows, columns)),
            "u": lambda: rng.integers(0, 255, (rows, columns)).astype(np.uint8),
            "m": lambda: rng.random((rows, columns)) < 0.5,
            "f": lambda: np.zeros((rows, columns), bool),
            "e": lambda: np.ones((rows, columns), bool),
            "p": lambda: rng.permutation(rows),
            "q": lambda: rng.permutation(columns),
            "g": lambda: rng.integers(0, columns, (rows, columns)),
            "w": lambda: normal(columns),
            "v": lambda: normal(columns),
            "c3": lambda: normal(channels, rows // channels, columns),
            "t3": lambda: normal(channels, rows // channels, columns),
            "c4": lambda: normal(*images),
            "t4": lambda: normal(*images),
            "r": lambda: normal(rows, columns),
            "rw": lambda: normal(columns),
            "rv": lambda: normal(columns),
            "r4": lambda: normal(*images),
            "rw4": lambda: normal(channels),
            "rv4": lambda: normal(channels),
            "w4": lambda: normal(channels),
            "v4": lambda: normal(channels),
        }
        return makers[name]() if name in makers else None

    def seen_as(self, name: str, array):
        """The array of a library in its layout."""
        if name == "x" and self.layout == "s":
            return array[:, ::2]
        if name == "x" and self.layout == "t":
            return array.T
        if name == "t3":
            return (
                array.transpose(1, 0, 2)
                if isinstance(array, np.ndarray)
                else array.permute((1, 0, 2))
            )
        if name == "t4":
            order = (0, 2, 3, 1)
            return array.transpose(order) if isinstance(array, np.ndarray) else array.permute(order)
        return array

    def numbers(self) -> dict:
        rows, columns = matrix_shape(self.count)
        return {"shape": (rows, columns), "columns": (columns,), "count": self.count}


def names_in(statement: str) -> set[str]:
    return set(re.findall(r"\b[a-z_]\w*\b(?!\s*=[^=])", statement))


# What the libraries call differently.
def lookup(library: str, name: str):
    module = {"tenon": tenon, "numpy": np, "torch": torch}[library]
    if library == "numpy":
        special = {"cast": lambda x, dtype: x.astype(dtype)}
    elif library == "torch":
        special = {
            "aten": torch.ops.aten,
            "cast": lambda x, dtype: x.to(dtype),
            "contiguous": lambda x: x.contiguous(),
            "grad": torch.autograd.grad,
            "step": torch.ones(()),
            "bool_": torch.bool,
            **{
                each: getattr(torch.nn.functional, each)
                for each in ("batch_norm", "layer_norm", "rms_norm")
            },
        }
    else:
        special = {"bool_": tenon.bool}
    return special[name] if name in special else getattr(module, name, None)


def environment(library: str, arrays: Arrays, statement: str) -> dict:
    """What the names of a statement stand for in a library."""
    result = arrays.numbers()
    for name in names_in(statement) - set(result):
        array = arrays.get(name)
        if array is None:
            result[name] = lookup(library, name)
            continue
        if library == "numpy":
            array = array.copy()
        elif library == "tenon":
            array = tenon.tensor(array, requires_grad=name[0] == "r")
            array = tenon.cast(array, tenon.bfloat16) if name == "b" else array
        else:
            array = torch.tensor(array, requires_grad=name[0] == "r")
            array = array.bfloat16() if name == "b" else array
        result[name] = arrays.seen_as(name, array)
    return {name: value for name, value in result.items() if value is not None}


def value_of(case: Case, statement: str, names: dict):
    """What the statement gives, as NumPy has it."""
    if case.result and not case.result.startswith("["):
        exec(statement, names)
        value = names[case.result]
    else:
        value = eval(statement, names)
    if isinstance(value, (tuple, list)) and case.result.startswith("["):
        value = eval(f"value{case.result}", {"value": value})
    if torch and isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.float() if value.dtype == torch.bfloat16 else value
    elif isinstance(value, tenon.Tensor) and value.dtype == tenon.bfloat16:
        value = tenon.cast(value, tenon.float32)
    value = value.detach() if isinstance(value, tenon.Tensor) else value
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


@dataclass
class Moved:
    """Bytes that a statement has to read and to write."""

    read: int
    written: int
    in_place: bool  # what is written has been read


def moved(arrays: Arrays, case: Case, result) -> Moved:
    statement = case.ours

    def bytes_of(names):
        made = [(name, array.nbytes) for name in names if (array := arrays.get(name)) is not None]
        return sum(bytes_ // (2 if name == "b" else 1) for name, bytes_ in made)

    call, _, out = statement.partition("out=")
    read = case.passes * bytes_of(names_in(call))
    written = bytes_of(names_in(out)) if out else result.nbytes
    if "bfloat16" in call or (re.match(r"b\b", call) and result.size > 1):
        written //= 2  # NumPy has them as float32
    return Moved(read, written, bool(out))


def compare(ours, theirs, library: str) -> None:
    theirs = np.asarray(theirs).reshape(ours.shape)
    if ours.dtype.kind == "f" or theirs.dtype.kind == "f":
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        scale = max(1.0, float(np.abs(theirs).max(initial=0)))
        tolerance = 4e-3 if library == "torch" else 1e-3
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-5 * scale, err_msg=library)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=library)
