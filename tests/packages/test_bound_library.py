# SPDX-License-Identifier: Apache-2.0
"""examples/bound_library: a CBLAS bound by entries in YAML, built out of tree as its author would."""

import os

import building
import pytest

pytestmark = pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
SOURCE = os.path.join(building.HERE, "../../examples/bound_library")

COMPARE = """
import numpy as np
import tenon
tenon.plugins.load(PATH)
tenon.plugins.allow_overrides("bound_blas")
generator = np.random.default_rng(0)
wrong = []
def check(name, got, want, rtol):
    if not np.allclose(got.numpy(), want, rtol=rtol, atol=rtol, equal_nan=True) or got.shape != want.shape:
        wrong.append((name, got.dtype))
# BLAS adds in another order than NumPy: the error of a sum of seven products, and of a solve.
for dtype, rtol in (("float32", 1e-4), ("float64", 1e-12)):
    def normal(*shape):
        return generator.standard_normal(shape).astype(dtype)
    a, b, v, w = normal(7, 5), normal(5, 3), normal(5), normal(7)
    strided = tenon.tensor(normal(5, 14).T)[::2]  # no axis is dense
    nan = a.copy()
    nan[2, 3] = np.nan
    t = tenon.tensor
    check("gemm", t(a) @ t(b), a @ b, rtol)
    check("gemm of views", strided @ t(b), strided.numpy() @ b, rtol)
    check("gemm of NaN", t(nan) @ t(b), nan @ b, rtol)
    check("gemv", t(a) @ t(v), a @ v, rtol)
    check("gemv, transposed", t(w) @ t(a), w @ a, rtol)
    check("dot", t(v) @ t(v), np.asarray(v @ v), rtol)
    check("linear", tenon.linear(t(a), t(b.T.copy())), a @ b, rtol)
    check("linear of a vector", tenon.linear(t(v), t(b.T.copy())), v @ b, rtol)
    check("norm2", tenon.norm(t(a)), np.linalg.norm(a), rtol)
    check("add", t(a) + t(nan), a + nan, rtol)
    check("add of a row", t(a) + t(v), a + v, rtol)
    check("subtract", t(a) - t(nan), a - nan, rtol)
    square = normal(5, 5) + 5 * np.eye(5, dtype=dtype)
    upper, lower = np.triu(square), np.tril(square)
    solve = tenon.linalg.solve_triangular
    check("upper", solve(t(square), t(b), upper=True), np.linalg.solve(upper, b), rtol)
    check("lower", solve(t(square), t(b), upper=False), np.linalg.solve(lower, b), rtol)
    check("right", solve(t(square), t(a), upper=True, left=False), np.linalg.solve(upper.T, a.T).T, rtol)
    check("empty", t(a[:0]) @ t(b), a[:0] @ b, rtol)
print(wrong)
for op in ("matmul", "linear", "norm2", "add", "subtract", "triangular_solve"):
    kernels = tenon.plugins.explain(op, device="cpu", dtype="float32")["kernels"]
    print(op, kernels[0]["plugin"], end="; ")
"""


@pytest.fixture(scope="module")
def plugin():
    return os.path.join(building.build("bound_library", source=SOURCE), "libtenon_bound_blas.so")


def test_every_entry_computes_what_numpy_does(plugin):
    lines = building.python(COMPARE.replace("PATH", repr(plugin))).splitlines()
    assert lines[0] == "[]"
    assert lines[1] == "".join(
        f"{op} bound_blas; "
        for op in ("matmul", "linear", "norm2", "add", "subtract", "triangular_solve")
    )


def test_without_the_library_the_device_computes(plugin):
    program = f"""
import tenon
tenon.plugins.load({plugin!r})
x = tenon.ones((3, 3))
print((x @ x).sum().item(), [k["plugin"] for k in tenon.plugins.explain("matmul", device="cpu")["kernels"]])
"""
    output = building.python(program, BOUND_BLAS_LIBRARY="/nowhere/libblas.so")
    assert output.startswith("27.0 ")
    assert "bound_blas" not in output


def test_one_library_of_several_is_enough(plugin):
    program = f"""
import tenon
tenon.plugins.load({plugin!r})
print([k["plugin"] for k in tenon.plugins.explain("matmul", device="cpu")["kernels"]])
"""
    output = building.python(program, BOUND_BLAS_LIBRARY="/nowhere/libblas.so:libopenblas.so.0")
    assert "bound_blas" in output
