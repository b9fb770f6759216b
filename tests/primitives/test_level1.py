# SPDX-License-Identifier: Apache-2.0
"""The device of eleven kernels against the CPU, where operator tests do not look already."""

import numpy as np
import pytest
import tenon

DEVICE = "level1"


def both(function):
    """The result on the CPU and on the device, from the same place of the random stream."""
    answers = []
    for device in ("cpu", DEVICE):
        tenon.manual_seed(12345)
        answers.append(function(device).to("cpu").numpy())
    return answers


@pytest.mark.parametrize(
    "draw",
    [
        lambda d: tenon.uniform([1001], device=d),
        lambda d: tenon.uniform([1001], device=d, dtype=tenon.float64),
        lambda d: tenon.uniform([77], -2.0, 3.0, device=d, dtype=tenon.float64),
        lambda d: tenon.randint(-5, 17, [1001], device=d),
        lambda d: tenon.randint(-(2**63), 2**63 - 1, [1001], device=d),
        lambda d: tenon.randint(3, 2**40, [1001], device=d),
        lambda d: tenon.randint(0, 100, [1001], dtype=tenon.int32, device=d),
        lambda d: tenon.randperm(300, device=d),
        lambda d: tenon.dropout(tenon.ones([1000], device=d), 0.3),
        lambda d: tenon.bernoulli(tenon.full([1000], 0.25, device=d)),
    ],
)
def test_random_numbers_are_the_same_bits(draw, request):
    on_cpu, on_device = both(draw)
    np.testing.assert_array_equal(on_device, on_cpu)


def test_random_numbers_in_a_range_differ_in_the_last_place_at_most():
    """The CPU stretches float32 numbers in double."""
    on_cpu, on_device = both(lambda d: tenon.uniform([5000], -2.0, 3.0, device=d))
    np.testing.assert_allclose(on_device, on_cpu, rtol=0, atol=5e-7)
    assert on_device.max() < 3


@pytest.mark.parametrize("count", [1, 7, 8, 1000])
@pytest.mark.parametrize("dtype, atol", [("float32", 3e-6), ("float64", 1e-12)])
def test_normal_numbers_are_close(count, dtype, atol):
    def draw(d):
        return tenon.normal([count], 1.0, 2.0, device=d, dtype=getattr(tenon, dtype))

    on_cpu, on_device = both(draw)
    np.testing.assert_allclose(on_device, on_cpu, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_streams_stay_in_step(name, dtype):
    """As many blocks are used up as on the CPU."""

    def second(device):
        getattr(tenon, name)([5], device=device, dtype=getattr(tenon, dtype))
        return tenon.randint(0, 1000, [3], device=device)

    on_cpu, on_device = both(second)
    np.testing.assert_array_equal(on_device, on_cpu)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 13, 100])
def test_sorting_is_stable_and_puts_nan_last(length, descending):
    rng = np.random.default_rng(length)
    x = rng.integers(0, 5, (3, length, 2)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[rng.random(x.shape) < 0.2] = -np.inf
    x[rng.random(x.shape) < 0.1] = np.inf
    for got, want in zip(
        tenon.sort_with_indices(tenon.tensor(x, device=DEVICE), 1, descending),
        tenon.sort_with_indices(tenon.tensor(x), 1, descending),
        strict=True,
    ):
        np.testing.assert_array_equal(got.to("cpu").numpy(), want.numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "uint8"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_whole_numbers(dtype, descending):
    x = np.array([3, 0, 127, 1, 0, 127, 2], dtype)
    if dtype in ("int32", "int64"):
        x[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    got = tenon.sort_with_indices(tenon.tensor(x, device=DEVICE), 0, descending)
    want = tenon.sort_with_indices(tenon.tensor(x), 0, descending)
    np.testing.assert_array_equal(got.values.to("cpu").numpy(), want.values.numpy())
    np.testing.assert_array_equal(got.indices.to("cpu").numpy(), want.indices.numpy())


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_positions_of_extremes(name, axis):
    x = np.array([[3.0, np.nan, 3.0], [3.0, 5.0, 0.0], [np.nan, 5.0, 0.0]], np.float32)
    got = getattr(tenon, name)(tenon.tensor(x, device=DEVICE), axis)
    np.testing.assert_array_equal(got.to("cpu").numpy(), getattr(np, name)(x, axis))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tenon.index_select(x, tenon.tensor([0, 3], device=DEVICE), 1),
        lambda x: tenon.gather(x, tenon.tensor([[-4]], device=DEVICE), 1),
        # Inside the tensor as a whole, outside the axis.
        lambda x: x[tenon.tensor([0], device=DEVICE), tenon.tensor([4], device=DEVICE)],
        lambda x: tenon.scatter(x, tenon.tensor([[3]], device=DEVICE), 1.0, 1),
        lambda x: tenon.index_add(
            x, tenon.tensor([2], device=DEVICE), tenon.ones([1, 3], device=DEVICE), 0
        ),
    ],
)
def test_positions_outside_are_refused(call):
    with pytest.raises(IndexError, match="lies outside its axis"):
        call(tenon.zeros([2, 3], device=DEVICE))


def test_an_output_says_where_numbers_are_made():
    out = tenon.zeros([4], device=DEVICE)
    tenon.fallback_report(reset=True)
    tenon.full([4], 2.5, out=out)
    ran = {(row["device"], row["op"]) for row in tenon.fallback_report()}
    assert (DEVICE, "primitive_iota") in ran and ("cpu", "full") not in ran
    assert out.tolist() == [2.5] * 4


@pytest.mark.parametrize("value", [0, -3, 2**62 + 1, True, 1.5, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "bool", "float16"])
def test_full_of_any_number(value, dtype):
    def make(d):
        return tenon.full([2, 2], value, dtype=getattr(tenon, dtype), device=d)

    digits = {"int64": 63, "int32": 31}.get(dtype)
    if digits and not abs(value) < 2**digits:
        for device in ("cpu", DEVICE):
            error = OverflowError if isinstance(value, int) else ValueError
            with pytest.raises(error, match=r"\[full\] expected a value"):
                make(device)
        return
    on_cpu, on_device = both(make)
    np.testing.assert_array_equal(on_device, on_cpu)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "mean"])
def test_reductions_of_nothing(name, shape):
    x = np.zeros(shape, np.float32)
    on_cpu, on_device = both(lambda d: getattr(tenon, name)(tenon.tensor(x, device=d), -1))
    np.testing.assert_array_equal(on_device, on_cpu)


def test_nothing_has_no_maximum():
    with pytest.raises(ValueError, match="expected elements to choose from"):
        tenon.max(tenon.zeros([0], device=DEVICE))


def test_dtypes_beyond_level_1_are_the_hosts():
    x = np.array([1 + 2j, 3j], np.complex64)
    with pytest.raises(tenon.PolicyError, match="no kernel for complex64"):
        tenon.exp(tenon.tensor(x, device=DEVICE))
    with tenon.fallback("allow"):
        result = tenon.exp(tenon.tensor(x, device=DEVICE))
        np.testing.assert_allclose(result.to("cpu").numpy(), np.exp(x), rtol=1e-6)


def test_training_without_the_host():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 8)).astype(np.float32)
    labels = (x[:, 0] > x[:, 1]).astype(np.int64)
    losses = {}
    for device in ("cpu", DEVICE):
        tenon.manual_seed(3)
        model = tenon.nn.Sequential(
            tenon.nn.Linear(8, 16), tenon.nn.ReLU(), tenon.nn.Dropout(0.1), tenon.nn.Linear(16, 2)
        ).to(device)
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.05)
        tenon.manual_seed(4)
        inputs, targets = tenon.tensor(x, device=device), tenon.tensor(labels, device=device)
        for _ in range(20):
            loss = tenon.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses[device] = loss.item()
    assert losses[DEVICE] < 0.2
    assert abs(losses[DEVICE] - losses["cpu"]) < 1e-3


def test_copies_that_are_lowered_can_be_validated():
    x = tenon.zeros([4, 2], device=DEVICE)
    with tenon.validation(compare="cpu") as watched:
        x[:, 1].copy_(tenon.ones([4], device=DEVICE))
        assert tenon.cumsum(x, 0).tolist() == [[0.0, i] for i in (1.0, 2.0, 3.0, 4.0)]
    assert watched.calls < 100


def test_like_functions_go_to_the_device_that_is_named():
    x = tenon.zeros([2], device=DEVICE)
    for here in ("cpu", DEVICE):
        full = tenon.full_like(x, 3.0, device=here)
        assert full.device == tenon.device(here)
        assert full.tolist() == [3.0, 3.0]
    assert tenon.full_like(x, 3.0).device == x.device


def test_nan_is_the_largest_number_to_search():
    """Comparisons with NaN are false: counting the smaller elements alone puts it first."""
    nan = float("nan")
    for device in ("cpu", "level1"):
        numbers = tenon.tensor([1.0, 2.0, nan], device=device)
        values = tenon.tensor([nan, 2.0, 0.0, float("inf")], device=device)
        assert tenon.searchsorted(numbers, values).tolist() == [2, 1, 0, 2]
        assert tenon.searchsorted(numbers, values, True).tolist() == [3, 2, 0, 2]
