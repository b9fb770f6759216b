# SPDX-License-Identifier: Apache-2.0
"""Custom operators written for paddle/extension.h: built, loaded, run, differentiated."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tenon
from tenon import autograd
from tenon.compat.paddle.utils import cpp_extension
from tenon.utils.cpp_extension import CompileError, is_build_available

pytestmark = pytest.mark.skipif(not is_build_available(), reason="no C++ compiler")

SOURCES = pathlib.Path(__file__).parent / "paddle" / "ops"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("paddle_ops")


def build(folder, name, *flags, source=None):
    return cpp_extension.load(
        name=name,
        sources=[SOURCES / (source or f"{name}.cc")],
        extra_cxx_cflags=["-O0", *flags],
        build_directory=folder / name,
    )


@pytest.fixture(scope="module")
def ops(folder):
    return build(folder, "operators")


def leaf(values):
    tensor = tenon.tensor(np.asarray(values, dtype=np.float64))
    tensor.requires_grad = True
    return tensor


def check_gradients(function, *arrays):
    """Gradients of sum(function * weights) against central differences."""
    arrays = [np.asarray(array, dtype=np.float64) for array in arrays]
    leaves = [leaf(array) for array in arrays]
    out = function(*leaves)
    weights = np.cos(np.arange(np.prod(out.shape), dtype=np.float64)).reshape(out.shape)
    (out * tenon.tensor(weights)).sum().backward()

    def value(inputs):
        return (function(*[tenon.tensor(a) for a in inputs]).numpy() * weights).sum()

    for i, array in enumerate(arrays):
        for index in np.ndindex(array.shape):
            steps = []
            for step in (1e-6, -1e-6):
                moved = [a.copy() for a in arrays]
                moved[i][index] += step
                steps.append(value(moved))
            expected = (steps[0] - steps[1]) / 2e-6
            assert abs(leaves[i].grad.numpy()[index] - expected) < 1e-5 * max(1, abs(expected))


X = np.linspace(-1.5, 2.0, 6).reshape(2, 3)
Y = np.linspace(0.5, -2.5, 6).reshape(2, 3)


def test_one_operator_is_one_of_tenons(ops):
    assert isinstance(ops.pd_tanh, type(tenon.ops.add))
    assert ops.pd_tanh.schema == "paddle_custom::pd_tanh(Tensor x) -> Tensor"
    np.testing.assert_allclose(ops.pd_tanh(tenon.tensor(X)).numpy(), np.tanh(X))
    np.testing.assert_allclose(ops.pd_tanh(tenon.tensor(X).mT).numpy(), np.tanh(X.T))
    assert ops.pd_tanh(tenon.empty((0, 3))).shape == (0, 3)
    assert float(ops.pd_tanh(tenon.tensor(0.5))) == pytest.approx(np.tanh(0.5))
    into = tenon.empty((2, 3), dtype=tenon.float64)
    assert ops.pd_tanh(tenon.tensor(X), out=into) is into
    np.testing.assert_allclose(into.numpy(), np.tanh(X))
    assert tenon.plugins.explain(ops.pd_tanh, "cpu", "float32")["route"] == "native"


def test_shapes_without_data(ops):
    out = ops.pd_tanh(tenon.empty((4, 5), dtype=tenon.float16, device="meta"))
    assert (out.shape, out.dtype, str(out.device)) == ((4, 5), tenon.float16, "meta:0")


def test_first_and_second_gradients(ops):
    check_gradients(ops.pd_tanh, X)
    x = leaf(X)
    (first,) = autograd.grad(ops.pd_tanh(x).sum(), [x], create_graph=True)
    (second,) = autograd.grad(first.sum(), [x])
    t = np.tanh(X)
    np.testing.assert_allclose(second.numpy(), -2 * t * (1 - t * t))


def test_attributes_of_every_type(ops):
    rest = (1 << 40, 0.5, 0.25, "one two", [1, 2], [1, 0.25], [3, 1 << 33], ["a", "", "b c"])
    out = ops.pd_attributes(tenon.tensor(X), True, 3, *rest)
    np.testing.assert_allclose(out.numpy(), X * (0.75 + 3 + 100 + 3 + 3 + (1 << 33)))
    x = leaf(X)
    ops.pd_attributes(
        x,
        flag=False,
        number=3,
        **dict(zip(["wide", "ratio", "fine", "text", "numbers", "ratios", "wides", "texts"], rest)),
    ).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full((2, 3), 3.0))
    with pytest.raises(IndexError, match=r"`number`: expected an int of 32 bits, got 4294967296"):
        ops.pd_attributes(leaf(X), True, 1 << 32, *rest)
    with pytest.raises(TypeError, match="argument 'texts': expected a list of str, got 'ab'"):
        ops.pd_attributes(leaf(X), True, 3, *rest[:-1], "ab")
    with pytest.raises(TypeError, match="missing a required argument: 'texts'"):
        ops.pd_attributes(leaf(X), True, 3, *rest[:-1])


def test_lists_of_tensors(ops):
    np.testing.assert_allclose(
        ops.pd_join([tenon.tensor(X), tenon.tensor(Y)], 1).numpy(), np.concatenate([X, Y], 1)
    )
    check_gradients(lambda x, y: ops.pd_join([x, y], 0), X, Y)
    many = [leaf(X * i) for i in range(12)]  # more gradients than one operator has results
    (ops.pd_join(many, 0) * 3.0).sum().backward()
    np.testing.assert_allclose(many[11].grad.numpy(), np.full((2, 3), 3.0))


def test_inputs_that_may_be_none(ops):
    np.testing.assert_allclose(ops.pd_maybe_add(tenon.tensor(X), None).numpy(), X + 1)
    check_gradients(lambda x: ops.pd_maybe_add(x, None), X)
    check_gradients(ops.pd_maybe_add, X, Y)
    x, y = tenon.tensor(X), tenon.tensor(Y)
    np.testing.assert_allclose(ops.pd_maybe_sum(x, None).numpy(), X)
    np.testing.assert_allclose(ops.pd_maybe_sum(x, [y, y]).numpy(), X + 2 * Y)


def test_in_place(ops):
    x, y = tenon.tensor(X), tenon.tensor(Y)
    view = x[0]
    assert ops.pd_add_in_place(x, y) is x
    np.testing.assert_allclose(x.numpy(), X + Y)
    np.testing.assert_allclose(view.numpy(), (X + Y)[0])
    strided = tenon.tensor(X.T.copy()).mT
    ops.pd_add_in_place(strided, y)
    np.testing.assert_allclose(strided.numpy(), X + Y)
    # The functional form leaves its arguments alone, also where the result goes over the second.
    operator = tenon.ops.paddle_custom.pd_add_in_place
    np.testing.assert_allclose(operator(x, y).numpy(), X + 2 * Y)
    np.testing.assert_allclose(x.numpy(), X + Y)
    operator(x, y, out=y)
    np.testing.assert_allclose(y.numpy(), X + 2 * Y)
    check_gradients(lambda a, b: ops.pd_add_in_place(a * 2.0, b), X, Y)


def test_in_place_counts_as_a_write(ops):
    x = leaf(X)
    with pytest.raises(RuntimeError, match="leaf"):
        ops.pd_add_in_place(x, tenon.tensor(Y))
    hidden = x * 1.0
    out = hidden * hidden
    ops.pd_add_in_place(hidden, tenon.tensor(Y))
    with pytest.raises(RuntimeError, match="modified in place"):
        out.sum().backward()


def test_some_outputs_in_place(ops):
    x, a, b = (tenon.zeros(shape) for shape in [(2,), (3,), (4,)])
    out, others, count = ops.pd_fill_all(x, [a, b])
    assert x.tolist() == [7, 7] and a.tolist() == [8] * 3 and b.tolist() == [8] * 4
    assert out is x and others[0] is a and others[1] is b and count.tolist() == [2]


def test_several_outputs(ops):
    positive, is_negative = ops.pd_split_sign(tenon.tensor(X))
    np.testing.assert_allclose(positive.numpy(), np.maximum(X, 0))
    np.testing.assert_array_equal(is_negative.numpy(), X < 0)
    check_gradients(lambda x: ops.pd_split_sign(x)[0], X)
    for k in (0, 1):  # the gradient of the other is zeros
        check_gradients(lambda x, y, k=k: ops.pd_sum_and_product(x, y)[k], X, Y)
    check_gradients(lambda x, y: sum(ops.pd_sum_and_product(x, y)), X, Y)


def test_other_devices_fall_back_to_the_host(ops):
    x = tenon.tensor(X, device="null")
    x.requires_grad = True
    with tenon.fallback("allow"):
        for _ in range(2):  # the first run attaches operators, by which counts are lost
            tenon.fallback_report(reset=True)
            x.grad = None
            out = ops.pd_tanh(x)
            joined = ops.pd_join([x, out], 0)
            joined.sum().backward()
    assert str(out.device) == str(joined.device) == str(x.grad.device) == "null:0"
    np.testing.assert_allclose(x.grad.to("cpu").numpy(), 2 - np.tanh(X) ** 2)
    ran = {row["op"]: row for row in tenon.fallback_report("null")}
    for op in ("pd_tanh", "pd_tanh_grad", "pd_join"):
        assert ran[f"paddle_custom::{op}"]["host"] >= 1
    with tenon.fallback("deny"), pytest.raises(tenon.PolicyError, match="pd_tanh"):
        ops.pd_tanh(x)


def test_missing_gradient_is_named(ops):
    x = leaf(X)
    with pytest.raises(
        NotImplementedError, match=r"\[paddle_custom::pd_maybe_sum\] has no gradient"
    ):
        ops.pd_maybe_sum(x, None).sum().backward()


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (0, RuntimeError, r"how is 0, %d stays \[expected how != 0 at .*operators.cc:\d+\]"),
        (1, RuntimeError, "thrown with 42"),
        (2, tenon.InternalError, "its kernel returned 0 tensors, expected 1"),
        (
            3,
            tenon.InternalError,
            r"made a float64 of shape \[2, 2\], expected float64 of shape \[2, 3\]",
        ),
        (4, tenon.InternalError, "SetInferDtypeFn"),
        (5, TypeError, "expected T for float64, got one for int32"),
        (6, MemoryError, "out of host memory"),
        (7, RuntimeError, "no std::exception"),
        (8, ValueError, "never assigned"),
        (9, ValueError, "neither memory nor dtype"),
    ],
)
def test_failures_are_exceptions(ops, how, kind, text):
    with pytest.raises(kind, match=text):
        ops.pd_fails(tenon.tensor(X), how)


def test_wrong_arguments(ops):
    with pytest.raises(TypeError, match="argument 'x': expected Tensor or number, got str"):
        ops.pd_tanh("x")
    with pytest.raises(RuntimeError, match="tanh: expected float32 or float64, got int64"):
        ops.pd_tanh(tenon.tensor([1, 2]))


def test_tensor_operators(ops):
    x, y = X, np.where(np.arange(6).reshape(2, 3) % 2, X, Y)
    with np.errstate(divide="ignore"):
        numbers = [
            x + y,
            x - y,
            x * y,
            x / y,
            x + 2,
            3 - x,
            2 * x,
            x / 2,
            -x,
            1 / y,
            x - 0.5,
            x * 3,
            x,
        ]
    less, positive = x < y, x > 0
    flags = [less, x <= y, x == y, x != y, x > y, x >= y, x < 2, x > 2]
    flags += [less & positive, less | positive, less ^ positive, ~less]
    expected = np.stack(numbers + [flag.astype(np.float64) for flag in flags])
    np.testing.assert_allclose(ops.pd_operators(tenon.tensor(x), tenon.tensor(y)).numpy(), expected)


def test_handles_and_functions(ops):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    product = x @ x.T
    expected = np.where(product > 100, product, 0) + 0.5
    np.testing.assert_allclose(ops.pd_handles(tenon.tensor(x)).numpy(), expected)


def test_dispatch(ops):
    floating, half, whole, complex_ = (
        "float32 float64",
        "float16",
        "uint8 int8 int16 int32 int64",
        ("complex64 complex128"),
    )
    sets = [
        floating,
        f"{floating} {half}",
        whole,
        complex_,
        f"{floating} {whole}",
        f"{floating} {complex_}",
        f"{floating} {complex_} {half}",
        f"{floating} {complex_} {half} bfloat16",
        f"{floating} {whole} {complex_}",
    ]
    names = f"{floating} {half} {whole} {complex_} bfloat16 bool".split()
    for which, members in enumerate(sets):
        for name in names:
            x = tenon.zeros((1,), dtype=getattr(tenon, name))
            if name in members.split():
                assert ops.pd_dispatch(x, which).tolist() == [x.dtype.itemsize]
            else:
                with pytest.raises(RuntimeError, match=f"expected .*, got {name}"):
                    ops.pd_dispatch(x, which)


def test_tensors_kept_by_an_operator_are_not_results(ops):
    first = ops.pd_running_sum(tenon.tensor(X))
    second = ops.pd_running_sum(tenon.tensor(Y))
    np.testing.assert_allclose(first.numpy(), X)
    np.testing.assert_allclose(second.numpy(), X + Y)


def test_names_are_registered_once(ops, folder):
    with pytest.raises(ValueError) as caught:
        build(folder, "duplicate")
    assert "PD_BUILD_OP(pd_tanh)" in str(caught.value)
    assert "duplicate" in str(caught.value) and ops.__file__ in str(caught.value)
    np.testing.assert_allclose(ops.pd_tanh(tenon.tensor(X)).numpy(), np.tanh(X))


FAULTS = [
    "expected PD_BUILD_OP(pd_faulty) before it",
    'parameter 1: expected for input "X@VECTOR" an input list (std::vector), got an input',
    'parameter 2: expected for attribute "number" int, got float',
    'attribute "number: half": expected "name: type" with a type of bool, int',
    'input "Y@GRAD" is neither an input nor an output of `pd_faulty`',
]


@pytest.mark.parametrize("fault", range(len(FAULTS)))
def test_faulty_registrations_are_refused(folder, fault):
    with pytest.raises(ValueError) as caught:
        build(folder, f"faulty{fault}", f"-DFAULT={fault}", source="faulty.cc")
    assert FAULTS[fault] in str(caught.value)


EDITED = """
#include "paddle/extension.h"
std::vector<paddle::Tensor> F(const paddle::Tensor& x) { return {x * FACTOR}; }
PD_BUILD_OP(pd_edited).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));
"""


def test_python_modules_in_the_same_source_are_refused(folder):
    with pytest.raises(CompileError, match="PYBIND11_MODULE: Python functions beside"):
        build(folder, "mixed", "-DFAULT=6", source="faulty.cc")


def test_built_anew_replaces_what_it_was(tmp_path):
    source = tmp_path / "edited.cc"
    for factor in (2, 3):
        source.write_text(EDITED.replace("FACTOR", str(factor)))
        module = cpp_extension.load("edited", [source], build_directory=tmp_path / "build")
        assert module.pd_edited(tenon.ones((2,))).tolist() == [factor, factor]
    tenon.plugins.unload("paddle_custom_edited")
    with pytest.raises(LookupError, match="unloaded or replaced"):
        module.pd_edited(tenon.ones((2,)))
    module = cpp_extension.load("edited", [source], build_directory=tmp_path / "build")
    assert module.pd_edited(tenon.ones((2,))).tolist() == [3, 3]


def test_setup_builds_a_module(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "ops.cc").write_text(
        '#include "paddle/extension.h"\n'
        "std::vector<paddle::Tensor> F(const paddle::Tensor& x) { return {x + 1.0}; }\n"
        'PD_BUILD_OP(pd_packaged).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));\n'
    )
    (tmp_path / "setup.py").write_text(
        "from tenon.compat.paddle.utils.cpp_extension import CppExtension, setup\n"
        'setup(name="pd_package", ext_modules=CppExtension(sources=["ops.cc"]))\n'
    )
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "lib"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(tmp_path / "lib"))
    try:
        import pd_package
    finally:
        sys.path.pop(0)
    assert pd_package.pd_packaged(tenon.ones((2,))).tolist() == [2, 2]


LOAD = """
import sys, tenon
from tenon.compat.paddle.utils.cpp_extension import load_op_library
try:
    module = load_op_library(sys.argv[1])
    again = load_op_library(sys.argv[1])
    print(module.pd_ruled(tenon.ones((2,))).tolist(), again.pd_ruled(tenon.ones((2,))).tolist())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_libraries_of_operators_are_held_to_the_rules_for_plugins(tmp_path, trusted):
    """Owner and mode of the file, and the policy: docs/plugins.md."""
    source = tmp_path / "edited.cc"
    source.write_text(EDITED.replace("FACTOR", "5").replace("pd_edited", "pd_ruled"))
    module = cpp_extension.load("ruled", [source], build_directory=tmp_path / "build")
    library = shutil.copy(module.__file__, trusted)

    def load(**environment):
        settings = {"TENON_PLUGIN_TRUST": "", **environment}
        done = subprocess.run(
            [sys.executable, "-c", LOAD, library],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert load() == "[5.0, 5.0] [5.0, 5.0]"
    lock = os.path.join(trusted, "lock")
    pinned = {"TENON_PLUGIN_POLICY": "pinned", "TENON_PLUGIN_LOCK": lock}
    out = load(**pinned)
    assert out.startswith(f"PolicyError: {library}: ") and out.endswith("[NOT_PINNED]")
    lines = subprocess.run(["sha256sum", library], check=True, capture_output=True).stdout
    with open(lock, "wb") as file:
        file.write(lines)
    assert load(**pinned) == "[5.0, 5.0] [5.0, 5.0]"
    os.chmod(library, 0o666)
    out = load()
    assert out.startswith(f"PolicyError: {library}: ") and out.endswith("[WRITABLE]")
