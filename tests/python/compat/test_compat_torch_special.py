# SPDX-License-Identifier: Apache-2.0
"""torch.special of tenon.compat.torch: Bessel functions and orthogonal polynomials. SciPy is the oracle."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch

scipy_special = pytest.importorskip("scipy.special")

BESSEL = {
    "bessel_j0": scipy_special.j0,
    "bessel_j1": scipy_special.j1,
    "bessel_y0": scipy_special.y0,
    "bessel_y1": scipy_special.y1,
    "modified_bessel_k0": scipy_special.k0,
    "modified_bessel_k1": scipy_special.k1,
    "scaled_modified_bessel_k0": scipy_special.k0e,
    "scaled_modified_bessel_k1": scipy_special.k1e,
    "spherical_bessel_j0": lambda x: scipy_special.spherical_jn(0, x),
}
POLYNOMIALS = {
    "chebyshev_polynomial_t": scipy_special.eval_chebyt,
    "chebyshev_polynomial_u": scipy_special.eval_chebyu,
    "hermite_polynomial_h": scipy_special.eval_hermite,
    "hermite_polynomial_he": scipy_special.eval_hermitenorm,
    "laguerre_polynomial_l": scipy_special.eval_laguerre,
    "legendre_polynomial_p": scipy_special.eval_legendre,
    "shifted_chebyshev_polynomial_t": scipy_special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": scipy_special.eval_sh_chebyu,
}


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions(name):
    # Each of the regions, their borders, and many zeros of the functions that oscillate.
    x = np.concatenate([np.logspace(-8, 3, 400), np.linspace(0.05, 60, 1000), [2.0, 25.0]])
    got = getattr(torch.special, name)(tenon.tensor(x)).numpy()
    want = BESSEL[name](x)
    # Near a zero the error is one of the amplitude, which falls as the root of x.
    amplitude = np.abs(want) if "modified" in name else np.maximum(np.abs(want), x**-0.5)
    assert np.max(np.abs(got - want) / np.maximum(amplitude, 1e-300)) < 2e-13


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_at_the_ends(name):
    got = getattr(torch.special, name)(tenon.tensor([0.0, np.inf, np.nan])).numpy()
    at_zero = {"y": -np.inf, "m": np.inf, "s": np.inf}.get(name.split("_")[-1][0], 0.0)
    at_zero = np.inf if "modified" in name else at_zero
    at_zero = 1.0 if name in ("bessel_j0", "spherical_bessel_j0") else at_zero
    np.testing.assert_array_equal(got, [at_zero, 0.0, np.nan])
    assert got.dtype == np.float32
    below = getattr(torch.special, name)(tenon.tensor([-1.5], dtype="float64")).item()
    if "j" in name:
        assert abs(below - BESSEL[name](-1.5)) < 1e-14
    else:
        assert np.isnan(below)


@pytest.mark.parametrize("name", BESSEL)
def test_gradients_of_bessel_functions(name):
    x = tenon.tensor([0.3, 1.9, 3.7, 24.0, 31.0], dtype="float64", requires_grad=True)
    function = getattr(torch.special, name)
    (first,) = tenon.grad(function(x).sum(), [x], create_graph=True)
    (second,) = tenon.grad(first.sum(), [x])
    h = 1e-5
    at = x.detach()
    slope = (function(at + h) - function(at - h)) / (2 * h)
    np.testing.assert_allclose(first.detach().numpy(), slope.numpy(), rtol=1e-6, atol=1e-9)
    # The central difference of second order loses half of the digits.
    bend = (function(at + 1e-3) - 2 * function(at) + function(at - 1e-3)) / 1e-6
    np.testing.assert_allclose(second.numpy(), bend.numpy(), rtol=1e-4, atol=1e-7)


def test_airy():
    # Each of the four regions and their borders; below 0 the amplitude is about 1.
    x = np.concatenate([np.linspace(-60, 20, 2001), [-2.0, 2.0, 0.0]])
    want, slope = scipy_special.airy(x)[:2]
    given = tenon.tensor(x, requires_grad=True)
    got = torch.special.airy_ai(given)
    (first,) = tenon.grad(got.sum(), [given], create_graph=True)
    (second,) = tenon.grad(first.sum(), [given])
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12, atol=2e-14)
    np.testing.assert_allclose(first.detach().numpy(), slope, rtol=1e-12, atol=5e-14)
    np.testing.assert_allclose(second.numpy(), x * want, rtol=1e-12, atol=2e-12)
    tail = x > 2  # where the function itself is below any absolute tolerance
    np.testing.assert_allclose(got.detach().numpy()[tail], want[tail], rtol=1e-12)
    ends = torch.special.airy_ai(tenon.tensor([np.inf, -np.inf, np.nan])).numpy()
    np.testing.assert_array_equal(ends, [0.0, 0.0, np.nan])


@pytest.mark.parametrize("name, slope", [("bessel_j0", 0.0), ("bessel_j1", 0.5)])
def test_gradients_at_zero(name, slope):
    x = tenon.zeros(1, dtype="float64").requires_grad_()
    getattr(torch.special, name)(x).sum().backward()
    assert x.grad.tolist() == [slope]


def test_bessel_functions_of_other_dtypes():
    assert torch.special.bessel_j0(tenon.tensor([1, 2])).dtype == tenon.float32
    with pytest.raises(TypeError, match="bessel_j0.*expected real numbers, got complex64"):
        torch.special.bessel_j0(tenon.tensor([1j]))
    with pytest.raises(TypeError, match="expected a tensor, got float"):
        torch.special.bessel_j0(1.0)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = np.linspace(-1.5, 1.5, 31)[:, None]
    n = np.arange(9)
    got = getattr(torch.special, name)(tenon.tensor(x), tenon.tensor(n))
    np.testing.assert_allclose(got.numpy(), POLYNOMIALS[name](n, x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name, root", [("v", "cos"), ("w", "sin")])
def test_chebyshev_of_the_third_and_fourth_kind(name, root):
    angle = np.linspace(0.1, 3.0, 20)
    function = getattr(torch.special, f"chebyshev_polynomial_{name}")
    wave = getattr(np, root)
    for n in range(6):
        want = wave((n + 0.5) * angle) / wave(angle / 2)
        got = function(tenon.tensor(np.cos(angle)), n).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)
        shifted = getattr(torch.special, f"shifted_chebyshev_polynomial_{name}")
        got = shifted(tenon.tensor((np.cos(angle) + 1) / 2), n).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_degrees():
    x = tenon.tensor([0.5, 2.0])
    legendre = torch.special.legendre_polynomial_p
    assert legendre(x, -1).tolist() == [0.0, 0.0] and legendre(x, 0).tolist() == [1.0, 1.0]
    assert legendre(x, tenon.tensor([1.9, 2.0])).tolist() == [0.5, 5.5]
    assert legendre(2, tenon.tensor([0, 1, 2])).tolist() == [1.0, 2.0, 5.5]
    assert legendre(x, tenon.zeros(0, 1, dtype="int64")).shape == (0, 2)
    with pytest.raises(TypeError, match="expected a tensor for input or n, got two numbers"):
        legendre(1.0, 2)
    with pytest.raises(TypeError, match="expected real numbers, got complex64"):
        legendre(tenon.tensor([1j]), 2)


def test_gradients_of_polynomials():
    x = tenon.tensor([-1.0, 0.3, 1.0], dtype="float64", requires_grad=True)
    torch.special.chebyshev_polynomial_t(x, 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [9.0, 12 * 0.09 - 3, 9.0], rtol=1e-12)
