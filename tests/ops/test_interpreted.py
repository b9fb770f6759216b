# SPDX-License-Identifier: Apache-2.0
"""Tenon's own operator files, read again under another namespace by the interpreter: each operator
must be what the compiled one is, whatever the dtype, the layout and the way of calling it."""

import re
from pathlib import Path

import numpy as np
import pytest
import tenon
from case import as_dtype, map_arrays
from running import dtype_name, named, named_keywords, results_of, skip_unserved, to_tensor
from samples import CASES

OPDEFS = Path(__file__).parents[2] / "opdefs"
# What takes C++, by the text of the entry.
COMPILED = re.compile(
    r"^  kind: view|: native|: \[.*(convert|materialize|primitive|strided).*\]", re.MULTILINE
)


def entries(path):
    """Texts of the entries of a file, which would bring models of ONNX to these operators: without that line."""
    text = re.sub(r"\n  onnx:.*(\n    .*)*", "", "\n" + path.read_text())
    return text.split("\n- op: ")[1:]


def interpretable(entry):
    has_kernel = "kind: kernel" in entry and "\n  decompose:" not in entry
    return not has_kernel and not COMPILED.search(entry)


CHOSEN = {path: [e for e in entries(path) if interpretable(e)] for path in OPDEFS.glob("*.yaml")}
NAMES = {entry.split("\n")[0]: entry for chosen in CHOSEN.values() for entry in chosen}
RANDOM = {name for name, entry in NAMES.items() if "random" in entry}


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    folder = tmp_path_factory.mktemp("again")
    paths = []
    for path, chosen in sorted(CHOSEN.items()):
        if chosen:
            text = "namespace: again\nops:\n" + "".join("\n- op: " + entry for entry in chosen)
            paths.append(folder / path.name)
            paths[-1].write_text(text)
    return tenon.ops.load(*paths)


def answer(function, *args, **kwargs):
    """Results, or the kind of error."""
    try:
        return results_of(function(*args, **kwargs))
    except Exception as error:
        return type(error)


SLACK = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "complex64": 3e-6}


def values(tensor):
    tensor = tensor.detach().to("cpu")
    if dtype_name(tensor).startswith(("bfloat16", "float8")):
        tensor = tensor.to(tenon.float32)
    return tensor.numpy()


def assert_same(got, want):
    if isinstance(want, type):
        assert got is want
        return
    assert not isinstance(got, type), got
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert (tuple(one.shape), one.dtype) == (tuple(other.shape), other.dtype)
        slack = SLACK.get(dtype_name(other), 1e-13)
        np.testing.assert_allclose(values(one), values(other), slack, slack, equal_nan=True)


SAMPLED = [case for case in CASES if case.op in NAMES and case.op not in RANDOM]


def call_with(case, device, dtype="float64", place=to_tensor):
    args = [
        named(map_arrays(lambda a: place(a, device), as_dtype(value, dtype)), device)
        for value in case.args
    ]
    kwargs = {
        name: map_arrays(lambda a: place(a, device), value) for name, value in case.kwargs.items()
    }
    return args, named_keywords(kwargs, device)


def test_most_of_the_files_are_interpreted():
    assert len(NAMES) > 140
    assert len({case.op for case in SAMPLED}) > 100


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_samples(again, case, dtype, device):
    skip_unserved(device, dtype)
    args, kwargs = call_with(case, device, dtype)
    want = answer(getattr(tenon, case.op, None) or tenon.ops.tenon, *args, **kwargs)
    assert_same(answer(getattr(again, case.op), *args, **kwargs), want)


def reversed_gaps(array, device):
    """Every second element of something longer, read backwards."""
    storage = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    key = tuple(slice(None, None, 2) for _ in array.shape)
    storage[key] = np.flip(array)
    return tenon.flip(to_tensor(storage, device)[key]) if array.ndim else to_tensor(array, device)


@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_layouts(again, case, device):
    skip_unserved(device, "float64")
    args, kwargs = call_with(case, device, place=reversed_gaps)
    want = answer(getattr(tenon, case.op), *args, **kwargs)
    assert_same(answer(getattr(again, case.op), *args, **kwargs), want)


@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_meta(again, case):
    def on_meta(array, device):
        return to_tensor(array, "cpu").to(device)

    args, kwargs = call_with(case, "meta", place=on_meta)
    want = answer(getattr(tenon, case.op), *args, **kwargs)
    got = answer(getattr(again, case.op), *args, **kwargs)
    if isinstance(want, type):
        assert got is want
    else:
        assert [(t.shape, t.dtype, t.device) for t in got] == [
            (t.shape, t.dtype, t.device) for t in want
        ]


def floating_tensors(args):
    flat = [x for arg in args for x in (arg if isinstance(arg, list) else [arg])]
    return [x for x in flat if isinstance(x, tenon.Tensor) and x.dtype == tenon.float64]


def derivatives(function, args, kwargs):
    """First derivatives of a weighted sum of the results, and second ones of theirs."""
    inputs = floating_tensors(args)
    for x in inputs:
        x.requires_grad = True
    results = [r for r in results_of(function(*args, **kwargs)) if r.requires_grad]
    if not results:
        return [], []

    def weighted(tensors):
        total = None
        for tensor in tensors:
            weight = tenon.arange(tensor.numel, dtype=tenon.float64).reshape(tensor.shape).cos()
            part = (tensor * weight.to(tensor.device)).sum()
            total = part if total is None else total + part
        return total

    first = tenon.grad(weighted(results), inputs, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    second = tenon.grad(weighted(again), inputs, allow_unused=True) if again else []
    return first, second


def derivatives_or_error(function, args, kwargs):
    try:
        return derivatives(function, args, kwargs)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("case", SAMPLED, ids=str)
def test_gradients(again, case, device):
    skip_unserved(device, "float64")
    want = derivatives_or_error(getattr(tenon, case.op), *call_with(case, device))
    got = derivatives_or_error(getattr(again, case.op), *call_with(case, device))
    if isinstance(want, type):
        assert got is want
        return
    for ours, theirs in zip(got, want, strict=True):
        assert [g is None for g in ours] == [g is None for g in theirs]
        for one, other in zip(ours, theirs, strict=True):
            if one is not None:
                np.testing.assert_allclose(values(one), values(other), 1e-11, 1e-11)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e-30, 7.0]
DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64"]
DTYPES += ["int64", "float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
ELEMENTWISE = [
    n for n, entry in NAMES.items() if "elementwise\n" in entry and "internal" not in entry
]


def tensors_of(name):
    """How many tensors an operator takes, if it needs nothing else."""
    signature = re.search(r"sig: \"?\((.*?)\) ->", NAMES[name]).group(1)
    params = [p.strip() for p in signature.split(",")]
    needed = [p for p in params if "=" not in p and p != "*"]
    return len(needed) if all(p.startswith("Tensor ") for p in needed) else 0


def elements(dtype, count):
    """Three rows of special values for each of `count` tensors."""
    numbers = [0, 1, 2, 3, 5, 7, 100, 127, 1, 0, 4, 6]
    if dtype.startswith(("float", "bfloat", "complex")):
        numbers = SPECIAL
    elif dtype.startswith("int"):
        numbers = [*numbers[:8], -1, -7, -128, 6]
    arrays = [np.roll(numbers, i * 5) for i in range(count)]
    return [tenon.tensor(a.tolist(), dtype=getattr(tenon, dtype)).reshape(3, 4) for a in arrays]


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if tensors_of(n)])
def test_dtypes(again, name):
    mine, builtin = getattr(again, name), getattr(tenon, name)
    for dtype in DTYPES:
        args = elements(dtype, tensors_of(name))
        assert_same(answer(mine, *args), answer(builtin, *args))
        if len(args) == 2:
            for other in (2, 2.5, True, args[1][0], args[1][0, 1]):
                want = answer(builtin, args[0], other)
                assert_same(answer(mine, args[0], other), want)


@pytest.mark.parametrize("shapes", [((), ()), ((0,), (1,)), ((4, 1, 2), (3, 1)), ((0, 3), (3,))])
@pytest.mark.parametrize("name", ["add", "divide", "atan2", "less", "maximum", "logaddexp"])
def test_shapes(again, name, shapes):
    args = [tenon.tensor(np.full(shape, 0.5 + i)) for i, shape in enumerate(shapes)]
    want = answer(getattr(tenon, name), *args)
    assert_same(answer(getattr(again, name), *args), want)


@pytest.mark.parametrize(
    "shape", [(300, 1000), (3, 100_000), (70_000, 3), (2, 50, 40, 30)], ids=str
)
def test_blocks(again, shape):
    """Many blocks, with every way in which operands may lie beside each other."""
    x = tenon.tensor(np.random.default_rng(5).standard_normal(shape))
    row, column = x[0], x[..., :1]
    mixed = x.permute(*reversed(range(len(shape))))
    for args in [
        (x, x),
        (x, row),
        (x, column),
        (column, x),
        (mixed, mixed),
        (x[::2], row),
        (x, 2.0),
    ]:
        assert_same(answer(again.hypot, *args), answer(tenon.hypot, *args))
    target = tenon.zeros_like(mixed)
    again.exp(mixed, out=target)
    assert_same((target,), (mixed.exp(),))
