# SPDX-License-Identifier: Apache-2.0
"""Each row of the kernel table, with every value of each attribute, against the processor."""

import functools
import itertools
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tenon
from paddle_support import LIBRARIES, library, rows_of
from tenon import autograd
from tenon.compat import paddle

pytestmark = pytest.mark.skipif(
    not LIBRARIES.exists(), reason="TENON_BUILD_DIR has no stand-in plugins"
)


@pytest.fixture(scope="module", autouse=True)
def standins():
    for name in ("standin", "standin_raw", "standin_wrong"):
        paddle.load_device_plugin(library(name))
    with tenon.fallback("allow"):
        yield


X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4) + np.float32(0.01)
M = X.reshape(6, 4)
Y = np.linspace(0.1, 2, 4, dtype=np.float32)
P = np.abs(X)
N = np.random.default_rng(0).integers(-9, 9, (2, 3, 4)).astype(np.int32)
B = N > 0
LABELS = np.array([0, 3, -100, 1, 1, 2])
AXES = [None, [0], [1], [-1], [0, 2], [2, 0], [-1, -2], [0, 1, 2]]


def operator(name, *arrays, **attributes):
    def call(tensor):
        values = [tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
        return getattr(tenon, name)(*values, **attributes)

    return call


def concat(axis, tensor):
    return tenon.concat([tensor(X), tensor(X * 2), tensor(P)], axis)


def full(value, dtype, tensor):
    return tenon.full([2, 3], value, dtype=dtype, device=tensor.device)


def gradient(name, x, weights, **attributes):
    """The gradient of an operator, weighted: what runs is the operator `name`_grad."""

    def call(tensor):
        leaf = tensor(x)
        leaf.requires_grad = True
        out = getattr(tenon, name)(leaf, **attributes)
        return autograd.grad([out], [leaf], [tensor(weights)])

    return call


def reductions(name, array):
    return [
        operator(name, array, axis=axis, keepdim=keepdim)
        for axis in AXES
        for keepdim in (False, True)
    ]


UNARY = "abs ceil cos exp floor log reciprocal relu rsqrt sigmoid sign silu sin sqrt square tanh"
COMPARISONS = "equal not_equal less less_equal greater greater_equal"
CASES = {
    **{
        name: [operator(name, P if name in ("log", "rsqrt", "sqrt") else X)]
        for name in UNARY.split()
    },
    **{name: [operator(name, X, Y), operator(name, X, X)] for name in ("add", "multiply")},
    **{name: [operator(name, X, Y), operator(name, Y, X)] for name in ("subtract", "divide")},
    **{name: [operator(name, N, N[:1, ::-1].copy())] for name in ("maximum", "minimum")},
    **{
        name: [operator(name, N, N[:, ::-1].copy()), operator(name, B, ~B)]
        for name in COMPARISONS.split()
    },
    **{f"{name}_grad": [gradient(name, X, P)] for name in ("relu", "sigmoid", "tanh")},
    **{name: reductions(name, X) for name in ("sum", "mean")},
    **{name: reductions(name, N) for name in ("max", "min")},
    "softmax": [operator("softmax", X, axis=axis) for axis in range(-3, 3)],
    "softmax_grad": [gradient("softmax", X, P, axis=axis) for axis in range(-3, 3)],
    "sort_with_indices": [
        operator("sort_with_indices", N, axis=axis, descending=descending)
        for axis in range(-3, 3)
        for descending in (False, True)
    ],
    "concat": [functools.partial(concat, axis) for axis in range(-3, 3)],
    "matmul": [operator("matmul", M, M.T.copy()), operator("matmul", M.T.copy(), M)],
    "linear": [operator("linear", M, M, None)],
    "cast": [
        operator("cast", array, dtype)
        for array in (X, B, N.astype(np.int16))
        for dtype in (tenon.float64, tenon.int32, tenon.float32, tenon.bool)
        if tenon.tensor(array).dtype != dtype
    ],
    "clone": [lambda tensor: tenon.clone(tensor(X).permute(2, 0, 1))],
    "full": [
        functools.partial(full, value, dtype)
        for value, dtype in [(7, "int64"), (True, "int64"), (-0.5, "float32"), (3, "float32")]
    ],
    "sgd_update": [
        operator("sgd_update", X, P, lr=lr, weight_decay=0.0) for lr in (0.0, 0.5, -1e-3)
    ],
    "softmax_cross_entropy": [
        operator("cross_entropy", M, LABELS, ignore_index=ignored, reduction="none")
        for ignored in (-100,)
    ]
    + [
        operator("cross_entropy", M, np.abs(LABELS) % 4, ignore_index=ignored, reduction="none")
        for ignored in (0, 3, 17)
    ],
}
RAW = {name: CASES[name] for name in ("sum", "mean", "full")} | {
    name: reductions(name, N) for name in ("max", "min")
}


class On:
    """Makes tensors on a device."""

    def __init__(self, device):
        self.device = device

    def __call__(self, array):
        return tenon.tensor(array, device=self.device)


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(call, device):
    got, want = flat(call(On(device))), flat(call(On("cpu")))
    for one, other in zip(got, want, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        one = one.to("cpu")
        if one.dtype == tenon.float8_e4m3:  # NumPy has no such dtype
            one, other = one.to(tenon.float32), other.to(tenon.float32)
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-6, atol=2e-6)


def native(device, name):
    return rows_of(device).get(name, {"native": 0})["native"]


@pytest.mark.parametrize("name", [*CASES, "uniform"])
def test_values_with_every_attribute(name):
    before = native("standin", name)
    if name == "uniform":  # by its own generator: bounds, dtype and shape
        for low, high in [(0.0, 1.0), (-3.0, -2.5), (2.0, 7.0)]:
            out = (
                tenon.uniform([4, 5], low, high, dtype="float32", device="standin")
                .to("cpu")
                .numpy()
            )
            assert out.shape == (4, 5) and (low <= out).all() and (out < high).all()
            assert len(np.unique(out)) > 15
        assert native("standin", name) == before + 3
        return
    for call in CASES[name]:
        check(call, "standin")
    assert native("standin", name) == before + len(CASES[name])


@pytest.mark.parametrize("name", RAW)
def test_values_of_kernels_under_older_names(name):
    before = native("standin_raw", name)
    for call in RAW[name]:
        check(call, "standin_raw")
    assert native("standin_raw", name) == before + len(RAW[name])


def test_no_row_is_without_a_case():
    rows = {
        (row["kernel"], row["operator"].removeprefix("tenon::")) for row in paddle.kernel_table()
    }
    served = set()
    for plugin in paddle.device_plugins():
        if plugin["device"] not in ("standin", "standin_raw"):
            continue
        cases = {*CASES, "uniform"} if plugin["device"] == "standin" else set(RAW)
        for kernel in plugin["kernels"]:
            for name in filter(None, kernel["operator"].split(", ")):
                if name.removeprefix("tenon::") in cases:
                    served.add((kernel["name"], name.removeprefix("tenon::")))
    assert rows == served


# What a kernel has no parameter for takes another way, with the right result.
DECLINED = {
    f"{reduction}, ignoring {ignored}": operator(
        "cross_entropy", M, np.abs(LABELS) % 4, ignore_index=ignored, reduction=reduction
    )
    for reduction in ("mean", "sum")
    for ignored in (-100, 1)
}
DECLINED["one row"] = operator("cross_entropy", M[0], np.array(2), reduction="none")
DECLINED["three axes"] = operator(
    "cross_entropy", X, np.array([[0, 1, 0, 1], [2, 2, 1, 1]]), reduction="none"
)
DECLINED["int32"] = operator("cross_entropy", M, LABELS.astype(np.int32), reduction="none")
DECLINED["a wide class"] = operator(
    "cross_entropy", M, LABELS % 4, ignore_index=(1 << 32) + 1, reduction="none"
)
DECLINED["float8"] = operator("cast", X, tenon.float8_e4m3)
DECLINED["weight decay"] = operator("sgd_update", X, P, lr=0.5, weight_decay=0.1)
DECLINED["bias"] = operator("linear", M, M, np.arange(6, dtype=np.float32))
DECLINED["no axis"] = operator("sum", X, axis=[])
KERNEL_OF = {"float8": "cast", "weight decay": "sgd_update", "bias": "linear", "no axis": "sum"}


@pytest.mark.parametrize("what", DECLINED)
def test_what_a_kernel_cannot_express_takes_another_way(what):
    name = KERNEL_OF.get(what, "softmax_cross_entropy")
    before = native("standin", name)
    check(DECLINED[what], "standin")
    assert native("standin", name) == before


@pytest.mark.parametrize(
    "reduction, smoothing, weighted",
    list(itertools.product(["none", "mean", "sum"], [0.0, 0.25], [False, True])),
)
def test_cross_entropy_and_its_gradient(reduction, smoothing, weighted):
    def run(device):
        x = tenon.tensor(M, device=device, requires_grad=True)
        weight = tenon.tensor(Y, device=device) if weighted else None
        loss = tenon.nn.functional.cross_entropy(
            x,
            tenon.tensor(LABELS, device=device),
            weight=weight,
            reduction=reduction,
            label_smoothing=smoothing,
        )
        (loss * loss).sum().backward()
        return loss.detach().to("cpu").numpy(), x.grad.to("cpu").numpy()

    for got, want in zip(run("standin"), run("cpu"), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_of_many_rows_writes_one_number(reduction):
    """It lay before memory of other tensors, which the losses of the rows went into."""
    guards = [tenon.full([1], 7.0, device="standin") for _ in range(200)]
    x = np.random.default_rng(0).normal(size=(5000, 8)).astype(np.float32)
    labels = np.arange(5000) % 8
    got = tenon.cross_entropy(
        tenon.tensor(x, device="standin"),
        tenon.tensor(labels, device="standin"),
        reduction=reduction,
    )
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    losses = -logs[np.arange(5000), labels]
    assert float(got) == pytest.approx(getattr(losses, reduction)(), rel=1e-5)
    assert all(guard.item() == 7 for guard in guards)


ROOT = pathlib.Path(__file__).parents[3]


def compile_errors(source):
    """What the compiler says to a file that includes the kernel table's headers."""
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    folders = ("compat/paddle", "compat/paddle/include", "sdk/include")
    done = subprocess.run(
        [
            *(compiler, "-std=c++20", "-fsyntax-only", f"-I{LIBRARIES.parents[3] / 'gen'}"),
            *(f"-I{ROOT / folder}" for folder in folders),
            source,
        ],
        capture_output=True,
        text=True,
    )
    return done.stderr


def test_a_changed_signature_is_an_error_of_the_build(tmp_path):
    source = tmp_path / "changed.cpp"
    source.write_text(
        "#include <tenon/op_signatures.h>\n"
        "#undef TENON_HASH_softmax_cross_entropy\n"
        "#define TENON_HASH_softmax_cross_entropy 1\n"
        '#include "device/operators.hpp"\n'
    )
    errors = compile_errors(source)
    assert errors.count("the rows of tenon::softmax_cross_entropy in kernel_table.cpp") == 1
    assert "the rows of tenon::sum" not in errors


def test_a_row_that_leaves_a_parameter_out_is_an_error_of_the_build(tmp_path):
    table = (ROOT / "compat/paddle/device/kernel_table.cpp").read_text()
    settled = '.settled = {"reduction"},'
    assert table.count(settled) == 1
    source = tmp_path / "kernel_table.cpp"
    source.write_text(table.replace(settled, ""))
    errors = compile_errors(source)
    assert "CheckedRow<" in errors and "a row of the kernel table" in errors
    assert "cross_entropy_with_softmax" in errors
