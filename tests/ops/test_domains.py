# SPDX-License-Identifier: Apache-2.0
"""Values that an operator has no meaning for are errors, and the errors say what was expected."""

import math
import operator

import numpy as np
import pytest
import tenon

T = tenon.tensor
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def refused(function, error, *parts):
    with pytest.raises(error) as caught:
        function()
    for part in parts:
        assert part in str(caught.value)


# ---- random choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2.0, -1.0, math.nan, math.inf, -1e-3])
def test_bernoulli_refuses_what_is_no_probability(p):
    refused(
        lambda: tenon.bernoulli(T([0.5, p])),
        ValueError,
        "[bernoulli] expected probabilities from 0 to 1, got",
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_bernoulli_follows_small_probabilities(dtype):
    tenon.random.manual_seed(5)
    p = tenon.full((1_000_000,), 2.0**-12, dtype=dtype)
    hits = tenon.bernoulli(p).to("float32").sum().item()
    assert abs(hits - 244) < 80  # five standard deviations


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(
    "weights, text",
    [
        ([1.0, -1.0], "expected finite weights of at least 0, got -1"),
        ([1.0, math.nan], "expected finite weights of at least 0, got nan"),
        ([1.0, math.inf], "expected finite weights of at least 0, got inf"),
        ([0.0, 0.0], "expected weights of which one at least is above 0, got zeros alone"),
    ],
)
def test_multinomial_refuses_weights(weights, text, replacement):
    refused(
        lambda: tenon.multinomial(T(weights), 1, replacement), ValueError, "[multinomial]", text
    )


def test_multinomial_runs_out_of_weights():
    refused(
        lambda: tenon.multinomial(T([1.0, 0.0, 2.0]), 3),
        ValueError,
        "expected at least 3 weights above 0",
        "got 2; pass replacement=true",
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_no_position_of_weight_zero(dtype, replacement):
    tenon.random.manual_seed(7)
    weights = np.zeros((2000, 6))
    weights[:, 1], weights[:, 4] = 1, 3
    draws = tenon.multinomial(T(weights).to(dtype), 2, replacement).numpy()
    assert set(np.unique(draws)) == {1, 4}


def test_multinomial_of_many_small_floats_follows_the_weights():
    """A running sum in float16 stops at 2048."""
    tenon.random.manual_seed(9)
    draws = tenon.multinomial(tenon.ones((4096,), dtype="float16"), 4000, True).numpy()
    assert abs(draws.mean() - 2047.5) < 100
    assert draws.max() > 4000


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x: tenon.dropout(x, 2.0), "[dropout] expected a probability from 0 to 1, got 2"),
        (lambda x: tenon.dropout(x, -0.5), "[dropout] expected a probability from 0 to 1"),
        (lambda x: tenon.dropout(x, NAN, False), "[dropout] expected a probability from 0 to 1"),
        (lambda x: tenon.uniform([2], 1.0, 0.0), "[uniform] expected finite bounds with low <= "),
        (lambda x: tenon.uniform([2], NAN, 1.0), "[uniform] expected finite bounds"),
        (lambda x: tenon.uniform([2], 0.0, INF), "[uniform] expected finite bounds"),
        (lambda x: tenon.uniform_like(x, 1.0, 0.0), "[uniform] expected finite bounds"),
        (lambda x: tenon.normal([2], 0.0, -1.0), "[normal] expected std of at least 0, got -1"),
        (lambda x: tenon.normal([2], 0.0, NAN), "[normal] expected std of at least 0, got nan"),
        (lambda x: tenon.smooth_l1_loss(x, x, beta=-1.0), "expected beta of at least 0, got -1"),
        (lambda x: tenon.huber_loss(x, x, delta=0.0), "[huber_loss] expected delta above 0"),
    ],
)
def test_numbers_outside_their_domain(function, text):
    refused(lambda: function(tenon.ones((3,))), ValueError, text)


# ---- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [5, 3, -1])
def test_one_hot_refuses_positions(index):
    refused(
        lambda: tenon.one_hot(T([0, index]), 3),
        IndexError,
        f"[one_hot] expected indices from 0 to 2, got {index}",
    )


def test_other_positions_are_checked():
    x, row = tenon.ones((3, 2)), tenon.ones((3,))
    bad = T([3])
    for function in (
        lambda: tenon.gather(row, bad),
        lambda: tenon.scatter(row, bad, T([1.0])),
        lambda: tenon.scatter_add(row, bad, T([1.0])),
        lambda: tenon.index_select(x, bad, 0),
        lambda: tenon.take_along_axis(row, bad),
        lambda: tenon.embedding(x, bad),
        lambda: tenon.cross_entropy(tenon.ones((1, 3)), bad),
        lambda: tenon.nll_loss(tenon.ones((1, 3)), bad),
        lambda: x[bad],
    ):
        refused(function, IndexError, "got 3")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_count_are_defined(dtype):
    width = np.dtype(dtype).itemsize * 8
    counts = [0, 1, width - 1, width, width + 1] + ([] if dtype.startswith("u") else [-1, -64])
    x = T([1, 100, 1] if dtype.startswith("u") else [1, 100, -7]).to(dtype)
    for count in counts:
        inside = 0 <= count < width
        left = [int(v) for v in np.left_shift(x.numpy(), np.array(count, dtype))]
        right = [int(v) for v in np.right_shift(x.numpy(), np.array(count, dtype))]
        if not inside:
            left = [0, 0, 0]
            right = [0, 0, 0] if count < 0 else [-1 if v < 0 else 0 for v in x.tolist()]
        for y in (count, T([count] * 3).to(dtype)):
            assert (x << y).tolist() == left
            assert (x >> y).tolist() == right


# ---- numbers that a dtype does not hold ----------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_do_not_fit(dtype):
    info = np.iinfo(dtype)
    x = tenon.ones((3,), dtype=dtype)
    text = f"expected a value in [{info.min}, {info.max}] for {dtype}, got "
    for number in (int(info.max) + 1, int(info.min) - 1):
        if not -(2**63) <= number < 2**63:
            continue  # Python's parser of arguments refuses it
        for function in (
            lambda n=number: x + n,
            lambda n=number: n * x,
            lambda n=number: tenon.maximum(x, n),
            lambda n=number: tenon.where(T([True, False, True]), x, n),
            lambda n=number: x[::2] - n,
            lambda n=number: tenon.full((2,), n, dtype=dtype),
            lambda n=number: tenon.full_like(x, n),
            lambda n=number: tenon.pad(x, [1, 1], value=n),
            lambda n=number: tenon.arange(n, n + 1, dtype=dtype),
            lambda n=number: tenon.scatter(x, T([0]), n),
            lambda n=number: tenon.scatter_add(x, T([0]), n),
            lambda n=number: tenon.index_put(x, [T([0, 1])], n),
            lambda n=number: tenon.masked_scatter(x, T([True, False, False]), n),
            lambda n=number: x.clip(n, None),
            lambda n=number: operator.imul(tenon.ones((3,), dtype=dtype), n),
        ):
            refused(function, OverflowError, text + str(number))
        refused(lambda n=number: x.add_(n), OverflowError, text + str(number))
        refused(
            lambda n=number: tenon.linspace(n, n, 2, dtype=dtype), ValueError, "expected a value"
        )
        for function in (
            lambda n=number: tenon.tensor(n, dtype=dtype),
            lambda n=number: tenon.tensor([1, n], dtype=dtype),
            lambda n=number: operator.setitem(tenon.ones((3,), dtype=dtype), 0, n),
            lambda n=number: operator.setitem(tenon.ones((3,), dtype=dtype), slice(None), n),
            lambda n=number: operator.setitem(tenon.ones((3,), dtype=dtype), T([0, 1]), n),
            lambda n=number: operator.setitem(tenon.ones((3,), dtype=dtype), x == x, n),
            lambda n=number: tenon.ones((3,), dtype=dtype).fill_(n),
        ):
            refused(function, OverflowError, f"{number} does not fit {dtype}")
    if dtype != "uint64":
        assert (x * int(info.max)).tolist() == [int(info.max)] * 3
    assert tenon.full((1,), int(info.min), dtype=dtype).tolist() == [int(info.min)]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -1e30])
def test_floats_that_are_no_integers(dtype, value):
    refused(lambda: tenon.full((2,), value, dtype=dtype), ValueError, f"a value that {dtype} holds")


def test_floats_are_cut_to_integers():
    assert tenon.full((2,), 2.9, dtype="uint8").tolist() == [2, 2]
    assert tenon.full((2,), -0.5, dtype="uint8").tolist() == [0, 0]


def test_comparisons_answer_for_numbers_that_do_not_fit():
    x = T([1, 255]).to("uint8")
    assert (x < 300).tolist() == [True, True]
    assert (x == 257).tolist() == [False, False]
    assert (x > -1).tolist() == [True, True]
    assert (x[:1] != 257).tolist() == [True]
    refused(lambda: T([1]).to("uint64") > -1, OverflowError, "for uint64, got -1")


def test_made_integers_fit():
    refused(lambda: tenon.randint(0, 300, (2,), dtype="uint8"), ValueError, "for uint8, got 299")
    refused(lambda: tenon.randperm(300, dtype="uint8"), ValueError, "for uint8, got 299")
    refused(lambda: tenon.arange(300, dtype="uint8"), OverflowError, "for uint8, got 299")
    assert tenon.arange(256, dtype="uint8").tolist()[-1] == 255
    assert tenon.randint(0, 256, (4,), dtype="uint8").dtype == tenon.uint8
