# SPDX-License-Identifier: Apache-2.0
"""Operators that work along rows: a row has the same bits alone and among others, as TENON_KERNEL_ROWS promises for rows of
32 elements and more."""

import inspect

import numpy as np
import pytest
import tenon
from tenon import _core

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int8 uint8 bool complex64".split()
LENGTHS = [32, 33, 100, 1000, 4097, 16384]


def along_rows():
    """Names of operators whose definitions say along which axes they work."""
    return [name for name in dir(tenon.ops) if "rows: " in _core.operator_traits(name)]


def call(name, x):
    function = getattr(tenon, name, None) or getattr(tenon.ops, name)
    parameters = list(inspect.signature(function).parameters.values())
    tensors = [p for p in parameters if "Tensor" in str(p.annotation) and p.default is p.empty]
    axis = {"axis": -1} if "axis" in [p.name for p in parameters] else {}
    found = function(*[x] * max(1, len(tensors)), **axis)
    return found if isinstance(found, tuple) else (found,)


def numbers(dtype, length):
    rng = np.random.default_rng(length)
    array = (rng.standard_normal((7, length)) * 3).astype("float32")
    array[3, length // 2] = np.inf
    array[5, 1] = np.nan
    if dtype.startswith(("int", "uint", "bool")):
        array = np.nan_to_num(array, posinf=3, nan=0).clip(-9, 9)
        array = np.abs(array) if dtype == "uint8" else array
    return tenon.tensor(array).to(getattr(tenon, dtype))


def assert_same(a, b):
    a, b = (t.to(tenon.float32).numpy() if t.dtype == tenon.bfloat16 else t.numpy() for t in (a, b))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        *(np.signbit(v.view(v.real.dtype)) & ~np.isnan(v.view(v.real.dtype)) for v in (a, b))
    )


def test_reductions_and_normalisations_are_among_them():
    assert {"sum", "max", "softmax", "layer_norm", "rms_norm", "var", "logsumexp"} <= set(
        along_rows()
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", along_rows())
def test_rows_keep_their_bits(name, dtype):
    for length in LENGTHS:
        x = numbers(dtype, length)
        try:
            whole = call(name, x)
        except TypeError:  # the definition says which dtypes there are
            pytest.skip(f"{name} serves no {dtype}")
        for first, count in ((0, 1), (2, 1), (3, 2), (1, 5)):
            part = call(name, x[first : first + count].clone())
            for a, b in zip(whole, part, strict=True):
                assert_same(a[first : first + count].clone(), b)
