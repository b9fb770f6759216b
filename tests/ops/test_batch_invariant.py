# SPDX-License-Identifier: Apache-2.0
"""linear_batch_invariant: the numbers of linear, and a row's bits whatever rows are beside it."""

import numpy as np
import pytest
import tenon
from running import to_tensor

ROWS = (1, 2, 7, 24, 33)
DTYPES = ["float32", "float64", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "columns, depth", [(1, 1), (3, 17), (64, 64), (70, 129), (256, 1000), (520, 48)]
)
def test_bits_of_a_row_do_not_depend_on_the_rows_beside_it(columns, depth, dtype):
    rng = np.random.default_rng(0)
    weight = tenon.tensor(rng.standard_normal((columns, depth)), dtype=dtype)
    bias = tenon.tensor(rng.standard_normal(columns), dtype=dtype)
    x = tenon.tensor(rng.standard_normal((200, depth)), dtype=dtype)
    whole = tenon.linear_batch_invariant(x, weight, bias).to("float64").numpy()
    for rows in ROWS:
        for first in (0, 200 - rows):  # 200 is more than the rows that are multiplied together
            part = tenon.linear_batch_invariant(x[first : first + rows], weight, bias)
            part = part.to("float64").numpy()
            assert part.tobytes() == whole[first : first + rows].tobytes()


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    weight = tenon.tensor(rng.standard_normal((300, 700)).astype(np.float32))
    x = tenon.tensor(rng.standard_normal((130, 700)).astype(np.float32))
    threads = tenon.get_num_threads()
    results = set()
    try:
        for count in (1, 2, 4):
            tenon.set_num_threads(count)
            for rows in (1, 130):
                got = tenon.linear_batch_invariant(x[:rows], weight)[0]
                results.add(got.numpy().tobytes())
    finally:
        tenon.set_num_threads(threads)
    assert len(results) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_those_of_linear(dtype, device):
    rng = np.random.default_rng(2)
    # A device without a kernel of its own rounds the product and the sum with the bias.
    step = {"float64": 1e-14, "float32": 1e-6, "float16": 2**-9, "bfloat16": 2**-7}[dtype]
    for shape in [(5,), (1, 5), (2, 3, 5), (40, 5)]:
        x = to_tensor(rng.standard_normal(shape), device, dtype=dtype)
        weight = to_tensor(rng.standard_normal((7, 5)), device, dtype=dtype)
        bias = to_tensor(rng.standard_normal(7), device, dtype=dtype)
        got = tenon.linear_batch_invariant(x, weight, bias)
        assert got.shape == (*shape[:-1], 7) and got.dtype == x.dtype
        a, w, b = (t.to("cpu").to("float64").numpy() for t in (x, weight, bias))
        bound = step * (np.abs(a) @ np.abs(w).T + np.abs(b))
        assert (np.abs(got.to("cpu").to("float64").numpy() - (a @ w.T + b)) <= bound).all()


def test_strided_operands():
    rng = np.random.default_rng(3)
    x = tenon.tensor(rng.standard_normal((9, 4)).astype(np.float32)).transpose(0, 1)
    weight = tenon.tensor(rng.standard_normal((9, 6)).astype(np.float32)).transpose(0, 1)
    got = tenon.linear_batch_invariant(x, weight)
    want = tenon.linear_batch_invariant(x.contiguous(), weight.contiguous())
    assert got.numpy().tobytes() == want.numpy().tobytes()


def test_nan_and_inf_stay_in_their_rows():
    x = np.ones((3, 8), np.float32)
    x[0, 2], x[1, 3] = np.nan, np.inf
    got = tenon.linear_batch_invariant(tenon.tensor(x), tenon.ones([5, 8])).numpy()
    assert np.isnan(got[0]).all() and np.isposinf(got[1]).all() and (got[2] == 8).all()


def test_nothing_at_all():
    invariant = tenon.linear_batch_invariant
    assert invariant(tenon.zeros([0, 4]), tenon.zeros([3, 4])).shape == (0, 3)
    assert invariant(tenon.zeros([2, 4]), tenon.zeros([0, 4])).shape == (2, 0)
    got = invariant(tenon.zeros([2, 0]), tenon.zeros([3, 0]), tenon.ones([3]))
    assert got.tolist() == [[1.0] * 3] * 2


def test_what_is_refused():
    with pytest.raises(
        ValueError, match=r"linear_batch_invariant.*expected x.shape\[-1\] == weight.shape\[1\]"
    ):
        tenon.linear_batch_invariant(tenon.zeros([2, 3]), tenon.zeros([4, 5]))
    with pytest.raises(TypeError, match="linear_batch_invariant"):
        tenon.linear_batch_invariant(
            tenon.zeros([2, 3], dtype="int32"), tenon.zeros([4, 3], dtype="int32")
        )
