# SPDX-License-Identifier: Apache-2.0
"""Random operators: distribution, reproducibility, gradients through masks."""

import numpy as np
import pytest
import tenon
from running import skip_unserved


def array(tensor):
    return tensor.to("cpu").numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_fills_its_range(dtype, device):
    skip_unserved(device, dtype)
    tenon.manual_seed(1)
    x = array(tenon.uniform([20000], -2.0, 3.0, dtype=getattr(tenon, dtype), device=device))
    assert x.dtype == dtype and x.min() >= -2 and x.max() < 3
    assert abs(x.mean() - 0.5) < 0.05 and abs(x.var() - 25 / 12) < 0.05


BOUNDS = [
    (0.0, 1.0),
    (-1.0, 0.0),
    (2.0, 3.0),
    (-3.0, -2.0),
    (1.0, 1.0001),
    (0.0, 1e-3),
    (-200.0, 240.0),
]


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]
)
def test_uniform_numbers_stay_below_the_upper_bound(dtype, device):
    """Also where the dtype has few numbers below it, to which a number just below would round."""
    skip_unserved(device, dtype)
    dtype = getattr(tenon, dtype)
    for bounds in BOUNDS:
        low, high = (
            tenon.tensor(b, tenon.float64).to(dtype).to(tenon.float64).item() for b in bounds
        )
        tenon.manual_seed(1)
        x = tenon.uniform([8192], *bounds, dtype=dtype, device=device)
        x = array(x.to(tenon.float32) if dtype.itemsize < 4 else x)
        assert x.min() >= low and (x.max() < high or low == high == x.max()), bounds


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_numbers_of_the_whole_range_are_finite(dtype, device):
    """The width of the range is no number of the dtype."""
    skip_unserved(device, dtype)
    largest = tenon.finfo(getattr(tenon, dtype)).max
    tenon.manual_seed(1)
    x = tenon.uniform([4000], -largest, largest, dtype=getattr(tenon, dtype), device=device)
    x = array(x).astype("float64") / largest
    assert -1 <= x.min() < -0.9 and 0.9 < x.max() < 1 and abs(x.mean()) < 0.05


def test_uniform_refuses_bounds_that_the_dtype_does_not_hold(device):
    text = (
        "expected bounds of at most 65504 in magnitude, the largest number of float16, got 0 and 1"
    )
    with pytest.raises(ValueError, match=text):
        tenon.uniform([2], 0.0, 1e5, dtype=tenon.float16, device=device)


def test_uniform_numbers_are_those_of_the_seed():
    """The numbers of a seed are kept from version to version."""
    tenon.manual_seed(0)
    x = tenon.uniform([5])[:3]
    y = tenon.uniform([3], -2.0, 5.0)[:2]
    z = tenon.uniform([3], -2.0, 5.0, dtype=tenon.float64)[:2]
    assert x.tolist() == [0.3990464210510254, 0.8805201649665833, 0.7357127666473389]
    assert y.tolist() == [-1.863854169845581, 0.2361201047897339]
    assert z.tolist() == [0.9057493543977784, 0.9874373749439638]


def test_normal_has_mean_and_deviation(device):
    tenon.manual_seed(1)
    x = array(tenon.normal([20000], 2.0, 3.0, device=device))
    assert x.dtype == np.float32 and abs(x.mean() - 2) < 0.1 and abs(x.std() - 3) < 0.1


def uniform_words(count, dtype):
    """The uniform numbers that the normal ones of the same seed are made of, in float64 or wider."""
    tenon.manual_seed(3)
    numbers = array(tenon.uniform([count], dtype=getattr(tenon, dtype)))
    return numbers.astype(np.longdouble)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_those_of_box_and_muller(dtype):
    """Within 4 units of the last place; the angle is reduced to an eighth of a circle before pi comes in."""
    words = uniform_words(40_000, dtype)
    tenon.manual_seed(3)
    x = array(tenon.normal([40_000], dtype=getattr(tenon, dtype)))
    radius, turn = np.sqrt(-2 * np.log1p(-words[0::2])), words[1::2]
    quarter = np.rint(4 * turn)
    angle = (4 * turn - quarter) * (2 * np.arctan(np.longdouble(1)))
    cosine, sine, quarter = np.cos(angle), np.sin(angle), quarter.astype(int) % 4
    expected = np.empty(40_000, np.longdouble)
    expected[0::2] = radius * np.choose(quarter, [cosine, -sine, -cosine, sine])
    expected[1::2] = radius * np.choose(quarter, [sine, cosine, -sine, -cosine])
    errors = np.abs(x - expected) / np.spacing(np.abs(expected).astype(dtype))
    assert errors.max() < 4


# Devices whose kernel of `normal` is Tenon's own; others compute it with their own logarithms and cosines.
WITH_ITS_KERNEL = ("cpu", "opencl", "cuda", "rocm")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_normal_numbers_of_a_seed_are_the_same_everywhere(dtype, device):
    skip_unserved(device, dtype)
    if tenon.device(device).kind not in WITH_ITS_KERNEL:
        pytest.skip(f"{device} computes normal numbers with its own functions")

    def drawn(where):
        tenon.manual_seed(5)
        options = {"dtype": getattr(tenon, dtype), "device": where}
        numbers = [tenon.normal([1003], **options), tenon.normal([514], -1.3, 0.7, **options)]
        return [array(each.to(tenon.float64)).tolist() for each in numbers]

    assert drawn(device) == drawn("cpu")


FIRST_NORMAL = [0.7379257082939148, -0.6884336471557617, -1.286019206047058]
FIRST_WIDE_NORMAL = [1.6414849198457502, 4.607436809962925]


def test_normal_numbers_are_those_of_the_seed():
    """The numbers of a seed are kept from version to version, and for all instruction sets."""
    tenon.manual_seed(0)
    assert tenon.normal([5])[:3].tolist() == FIRST_NORMAL
    assert tenon.normal([3], 2.0, 3.0, dtype=tenon.float64)[:2].tolist() == FIRST_WIDE_NORMAL


def test_randint_reaches_every_number(device):
    tenon.manual_seed(1)
    x = array(tenon.randint(-2, 3, [1000], device=device))
    assert x.dtype == np.int64 and sorted(set(x)) == [-2, -1, 0, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5000])
def test_randperm_is_a_permutation(count, device):
    tenon.manual_seed(1)
    x = array(tenon.randperm(count, device=device))
    assert sorted(x) == list(range(count)) and (count < 9 or list(x) != list(range(count)))


def test_numbers_of_randperm_come_everywhere_equally_often():
    """Each of 4 numbers is at each of 4 positions in a quarter of 4000 permutations, give or take five deviations."""
    tenon.manual_seed(1)
    drawn = np.stack([array(tenon.randperm(4)) for _ in range(4000)])
    counts = np.stack([(drawn == each).sum(0) for each in range(4)])
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(4000 * 3 / 16)


def test_bernoulli_follows_probabilities(device):
    tenon.manual_seed(1)
    p = tenon.tensor(np.tile([0.0, 0.3, 1.0], (5000, 1)), device=device)
    assert np.abs(array(tenon.bernoulli(p)).mean(0) - [0, 0.3, 1]).max() < 0.03


@pytest.mark.parametrize("name", ["uniform_like", "normal_like"])
def test_like_takes_shape_and_dtype(name, device):
    skip_unserved(device, "float64")
    x = getattr(tenon, name)(tenon.zeros([2, 3], dtype=tenon.float64, device=device))
    assert tuple(x.shape) == (2, 3) and x.dtype == tenon.float64


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_follows_weights(replacement, device):
    tenon.manual_seed(1)
    weights = tenon.tensor(np.tile([0.0, 1.0, 3.0], (4000, 1)), device=device)
    draws = array(tenon.multinomial(weights, 1, replacement))[:, 0]
    assert draws.min() >= 1 and abs((draws == 2).mean() - 0.75) < 0.03
    if not replacement:
        both = array(tenon.multinomial(weights, 2))
        assert (np.sort(both, 1) == [1, 2]).all()


def test_seed_repeats(device):
    tenon.manual_seed(5)
    first = [array(tenon.uniform([7], device=device)) for _ in range(2)]
    tenon.manual_seed(5)
    again = [array(tenon.uniform([7], device=device)) for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_dropout_scales_what_it_keeps_and_reuses_its_mask(device):
    tenon.manual_seed(1)
    x = tenon.tensor(np.full(10000, 2.0), device=device, requires_grad=True)
    y = tenon.dropout(x, 0.25)
    values = array(y.detach())
    assert set(np.round(values, 6)) == {0.0, round(2 / 0.75, 6)}
    assert abs((values == 0).mean() - 0.25) < 0.02
    (grad,) = tenon.grad(y.sum(), x)
    np.testing.assert_allclose(array(grad), values / 2)
    assert tenon.dropout(x, 0.25, False) is not None
    np.testing.assert_array_equal(array(tenon.dropout(x, 0.25, False).detach()), array(x.detach()))
    assert array(tenon.dropout(x, 1.0).detach()).max() == 0
