# SPDX-License-Identifier: Apache-2.0
"""Derivatives of digamma of any order, against identities and numbers of 50 digits."""

import math

import numpy as np
import pytest
import tenon

INF, NAN = math.inf, math.nan


def polygamma(n, x, device, dtype="float64"):
    return tenon.polygamma(n, tenon.tensor(x, dtype=dtype, device=device)).to("cpu").numpy()


# (order, argument): value
KNOWN = {
    (1, 0.5): 4.934802200544679,
    (1, 1.0): 1.6449340668482264,
    (1, 1e-08): 1.0000000000000002e16,
    (1, 0.75): 2.5418796476716063,
    (1, 10.5): 0.09991695605912673,
    (1, 1000000.0): 1.0000005000001667e-06,
    (1, -0.5): 8.934802200544679,
    (1, -20.25): 19.69102535100871,
    (2, 0.25): -129.32773993753693,
    (2, 1.0): -2.4041138063191885,
    (2, 1234.5): -6.567039209328715e-07,
    (2, -1.25): 123.72136678366236,
    (3, 2.5): 0.22390584881725206,
    (3, -3.75): 1558.5200920240343,
    (4, 7.0): -0.00329677158902638,
    (5, 0.125): 31457340.659602646,
    (5, -0.0625): 2013266099.2481863,
    (8, 3.5): -0.5763846518699325,
    (15, 6313.5): 8.64711835273249e-47,
    (30, 513.25): -4.459690728714705e-51,
    (60, 12.5): -1029600030941724.4,
    (120, 2996.0): -3.714192839764739e-221,
    (200, 24.5): -4.727652519790466e95,
    (400, 26.5): -1.2156789110969053e298,
}


@pytest.mark.parametrize("order, x", KNOWN)
def test_known_values(order, x, device):
    """On the CPU within 9 units in the last place, by float64; on other devices the decomposition
    multiplies rounding errors by the order."""
    want = KNOWN[order, x]
    wider = 1 if device == "cpu" else 10 * order
    assert polygamma(order, [x], device)[0] == pytest.approx(want, rel=2e-15 * wider)
    if 1e-30 < abs(want) < 1e30 and np.float32(x) == x:
        assert polygamma(order, [x], device, "float32")[0] == pytest.approx(
            want, rel=1.2e-7 * wider
        )


@pytest.mark.parametrize("order", [1, 2, 3, 8, 30])
def test_recurrence_and_reflection(order, device):
    """psi(x + 1) - psi(x) is the derivative of 1 / x; also where the reflection is used."""
    x = np.concatenate([np.linspace(0.07, 30.07, 61), np.linspace(-9.93, -0.43, 24)])
    step = (-1.0) ** order * math.factorial(order) * x ** -(order + 1.0)
    low, high = polygamma(order, x, device), polygamma(order, x + 1, device)
    scale = np.maximum(np.maximum(abs(low), abs(high)), abs(step))
    assert (abs(high - low - step) / scale).max() < 1e-12


def test_ends_of_the_domain(device):
    x = [0.0, -0.0, -1.0, -7.0, INF, -INF, NAN]
    odd, even = polygamma(1, x, device), polygamma(2, x, device)
    np.testing.assert_array_equal(odd, [INF, INF, INF, INF, 0.0, NAN, NAN])
    np.testing.assert_array_equal(even, [-INF, INF, NAN, NAN, -0.0, NAN, NAN])


def test_order_zero_is_digamma_and_below_is_an_error(device):
    x = tenon.tensor([0.5, -1.5, 3.0], device=device)
    assert tenon.polygamma(0, x).tolist() == tenon.digamma(x).tolist()
    with pytest.raises(
        ValueError, match=r"\[polygamma\] expected an order n of at least 0, got -1"
    ):
        tenon.polygamma(-1, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes_are_computed_in_float32(dtype, device):
    x = tenon.tensor([1.0, 2.0, 3.0], device=device).to(getattr(tenon, dtype))
    got = tenon.polygamma(1, x)
    want = tenon.polygamma(1, tenon.tensor([1.0, 2.0, 3.0]))
    assert got.dtype == (tenon.float32 if dtype == "int32" else x.dtype)
    np.testing.assert_allclose(got.to("cpu").to(tenon.float32).numpy(), want.numpy(), rtol=1e-2)


def test_layouts_and_in_place(device):
    array = np.linspace(0.5, 6, 24).reshape(4, 6)
    x = tenon.tensor(array, device=device)
    want = polygamma(2, array, device)
    for ours, theirs in ((x.T, want.T), (x[:, ::2], want[:, ::2]), (x[0, 0], want[0, 0])):
        np.testing.assert_array_equal(tenon.polygamma(2, ours).to("cpu").numpy(), theirs)
    assert tuple(tenon.polygamma(1, x[:0]).shape) == (0, 6)
    out = tenon.zeros(4, 6, dtype="float64", device=device)
    tenon.polygamma(2, x, out=out)
    np.testing.assert_array_equal(out.to("cpu").numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [2**31, 2**31 + 1, 2**62])
def test_huge_orders_end(order, dtype, device):
    """The series ends at its first term, which is the largest by far, instead of after half as many
    terms as the order."""
    sign = 1 if order % 2 else -1
    for x in (0.125, 1.25, 2.5, -0.75):
        got = polygamma(order, [x], device, dtype)[0]
        assert np.isinf(got) and (x < 0 or np.sign(got) == sign)
    assert polygamma(order, [1e30], device, dtype)[0] == 0
