# SPDX-License-Identifier: Apache-2.0
"""Special functions and their derivatives, against numbers computed with 50 digits by mpmath."""

import math

import numpy as np
import pytest
import tenon
from running import skip_unserved

INF, NAN = math.inf, math.nan

# function: {argument: value}
KNOWN = {
    "erfinv": {
        1e-300: 8.86226925452758e-301,
        -1e-09: -8.86226925452758e-10,
        0.25: 0.2253120550121781,
        -0.5: -0.4769362762044699,
        0.9: 1.1630871536766743,
        -0.998: -2.1851242191330043,
        0.9999: 2.75106390571208,
        0.9999999403953552: 3.832506856900711,
        -0.9999999999999999: -5.8635847487551676,
    },
    "ndtri": {
        1e-300: -37.0470962993612,
        1e-38: -12.962359334796862,
        1e-10: -6.361340902404057,
        0.001: -3.0902323061678136,
        0.1: -1.2815515655446004,
        0.5000001: 2.506628273311648e-07,
        0.75: 0.6744897501960817,
        0.999: 3.090232306167813,
        0.9999999403953552: 5.294704084854598,
    },
    "ndtr": {
        -37.5: 4.605353009581955e-308,
        -10.0: 7.619853024160525e-24,
        -2.5: 0.006209665325776135,
        -0.001: 0.49960105778608893,
        0.5: 0.6914624612740131,
        3.0: 0.9986501019683699,
        8.0: 0.9999999999999993,
    },
    "log_ndtr": {
        -1000000.0: -500000000014.73444,
        -1000.5: -500507.9521946862,
        -40.0: -804.6084420137538,
        -5.0: -15.064998393988725,
        -1.0: -1.8410216450092636,
        -0.5: -1.1759117615936185,
        0.25: -0.5129840754094305,
        3.0: -0.0013508099647481938,
        7.5: -3.190891672910947e-14,
    },
    "erfcx": {
        -26.5: 1.924553162418569e305,
        -9.25: 2.886367351808538e37,
        -3.3: 107274.43593281436,
        -0.1: 1.1236433541992095,
        1e-10: 0.999999999887162,
        0.5: 0.6156903441929259,
        2.0: 0.25539567631050575,
        4.0: 0.13699945762506138,
        9.0: 0.06230772403777468,
        30.0: 0.01879588886141675,
        100000.0: 5.6418958351954685e-06,
        1e30: 5.641895835477563e-31,
    },
    "i0": {
        1e-10: 1.0,
        0.5: 1.0634833707413236,
        -3.0: 4.8807925858650245,
        7.99: 423.5842036746737,
        8.01: 431.5817860520924,
        20.0: 43558282.559553534,
        -88.0: 7.034019697322304e36,
        713.0: 6.705128263670996e307,
    },
    "i0e": {
        1e-10: 0.9999999999,
        0.5: 0.6450352704491501,
        -3.0: 0.2430003541618254,
        7.99: 0.14352476537933484,
        8.01: 0.14333897941113852,
        20.0: 0.08978031188482602,
        -88.0: 0.0425881889916969,
        5000.0: 0.005642036898744589,
    },
    "i1": {
        1e-10: 5e-11,
        0.5: 0.2578943053908963,
        -3.0: -3.9533702174026093,
        7.99: 396.1152262074013,
        8.01: 403.6669399977041,
        20.0: 42454973.38512777,
        -88.0: -6.993938822790253e36,
        713.0: 6.700424559186402e307,
    },
    "i1e": {
        1e-10: 4.9999999995e-11,
        0.5: 0.1564208031848717,
        -3.0: -0.19682671329730086,
        7.99: 0.134217339578281,
        8.01: 0.13406776900984482,
        20.0: 0.08750622218328867,
        -88.0: -0.042345515252785806,
        5000.0: 0.005641472666838886,
    },
}
ZETA = {
    (1.0000001, 1.0): 10000000.571377,
    (1.5, 0.001): 31625.386966911912,
    (2.0, 1.0): 1.6449340668482264,
    (3.0, 7.25): 0.01091447614759887,
    (4.5, 1000000.0): 2.8571478571466072e-22,
    (12.0, 0.5): 4096.007724435796,
    (60.0, 0.75): 31356255.640743908,
    (300.0, 30.0): 0.0,
}

# (a, x): gammainc, gammaincc
INCOMPLETE_GAMMA = {
    (1e-10, 0.1): (0.9999999998177076, 1.8229239583260838e-10),
    (0.5, 1e-06): (0.0011283787909692363, 0.9988716212090307),
    (0.5, 0.5): (0.6826894921370859, 0.3173105078629141),
    (0.9, 1.05): (0.692141012064783, 0.30785898793521704),
    (1.0, 5.0): (0.9932620530009145, 0.006737946999085467),
    (3.5, 0.01): (8.530580469428509e-09, 0.9999999914694195),
    (20.5, 12.0): (0.015792370078999612, 0.9842076299210004),
    (20.0, 60.0): (0.9999999993648082, 6.351918340378976e-10),
    (200.0, 190.0): (0.2433474271006238, 0.7566525728993762),
    (2000.0, 2050.0): (0.8678507404035056, 0.13214925959649443),
    (5000.0, 5500.0): (0.9999999999963817, 3.618329558096479e-12),
    (1e12, 1.000002e12): (0.9772498140608813, 0.02275018593911871),
    (1e300, 1e300): (0.5, 0.5),
}


def close(device):
    """Units in the last place: what is below on the CPU, and more on devices whose exp and log are not
    the CPU's."""
    return 6 if device == "cpu" else 40


def call(name, values, device, dtype):
    tensors = [tenon.tensor([value], dtype=dtype, device=device) for value in values]
    return getattr(tenon, name)(*tensors).to("cpu").numpy()[0]


def check(name, values, want, device, ulp):
    assert call(name, values, device, "float64") == pytest.approx(want, rel=2.2e-16 * ulp, abs=0)
    is_exact = all(float(np.float32(value)) == value for value in values)
    if is_exact and 1e-36 < abs(want) < 3e38:
        assert call(name, values, device, "float32") == pytest.approx(want, rel=1.2e-7 * ulp, abs=0)


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(name, device):
    for x, want in KNOWN[name].items():
        # Decomposed, ndtr squares a rounded argument.
        wider = max(1, x * x) if name == "ndtr" and device != "cpu" else 1
        check(name, [x], want, device, close(device) * wider)


@pytest.mark.parametrize("x, q", ZETA)
def test_known_values_of_zeta(x, q, device):
    """A power multiplies the rounding error of its base by the exponent."""
    check("zeta", [x, q], ZETA[x, q], device, close(device) * max(1, x / 8))


@pytest.mark.parametrize("a, x", INCOMPLETE_GAMMA)
def test_known_values_of_incomplete_gamma(a, x):
    """Errors of the exponential function's argument count; SciPy's are as large."""
    for name, want in zip(("gammainc", "gammaincc"), INCOMPLETE_GAMMA[a, x], strict=True):
        assert call(name, [a, x], "cpu", "float64") == pytest.approx(want, rel=1e-13, abs=0)


@pytest.mark.parametrize("order", [1e4, 1e7, 1e9])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_of_large_orders_in_float32(name, order):
    """Where x is close to a, terms fall so slowly that their rest is more than the last of them."""
    a = tenon.full([61], order)
    x = (a.double() + tenon.linspace(-3, 3, 61, dtype=tenon.float64) * order**0.5).float()
    results, wanted = getattr(tenon, name)(a, x), getattr(tenon, name)(a.double(), x.double())
    assert float(((results.double() - wanted) / wanted).abs().max()) < 1.2e-7


def test_incomplete_gamma_broadcasts_and_has_gradients():
    a, x = tenon.tensor([[0.5], [1.0], [4.0]]), tenon.tensor([0.25, 2.0, 9.0], requires_grad=True)
    lower, upper = tenon.gammainc(a, x), tenon.gammaincc(a, x)
    np.testing.assert_allclose((lower + upper).detach().numpy(), np.ones((3, 3)), rtol=1e-6)
    (slope,) = tenon.grad([lower.sum()], [x], create_graph=True)
    density = [
        [y ** (b - 1) * math.exp(-y) / math.gamma(b) for y in x.tolist()] for b in (0.5, 1, 4)
    ]
    np.testing.assert_allclose(slope.detach().numpy(), np.sum(density, 0), rtol=1e-5)
    (curve,) = tenon.grad([slope.sum()], [x])
    by_parts = [
        [d * ((b - 1) / y - 1) for d, y in zip(row, x.tolist(), strict=True)]
        for b, row in zip((0.5, 1, 4), density, strict=True)
    ]
    np.testing.assert_allclose(curve.numpy(), np.sum(by_parts, 0), rtol=1e-5)
    assert tenon.gammainc(1, tenon.tensor(2)).item() == pytest.approx(1 - math.exp(-2), rel=1e-6)
    half = tenon.gammaincc(tenon.tensor([1.0], dtype="float16"), 2.0)
    # float16 rounds to 11 bits: its relative error is up to 4.9e-4.
    assert half.dtype == tenon.float16 and half.item() == pytest.approx(math.exp(-2), rel=1e-3)


def test_special_values_of_incomplete_gamma():
    a = tenon.tensor([0.0, 0.0, 2.0, 2.0, INF, -1.0, 1.0, NAN, 1.0, INF])
    x = tenon.tensor([1.0, 0.0, 0.0, INF, 1.0, 1.0, -1.0, 1.0, NAN, INF])
    want = [1.0, NAN, 0.0, 1.0, 0.0, NAN, NAN, NAN, NAN, NAN]
    np.testing.assert_array_equal(tenon.gammainc(a, x).numpy(), want)
    np.testing.assert_array_equal(tenon.gammaincc(a, x).numpy(), 1 - np.array(want))


SPECIAL = {
    "erfinv": {-1: -INF, 1: INF, -1.5: NAN, 2: NAN, 0: 0, NAN: NAN, INF: NAN},
    "ndtri": {0: -INF, 1: INF, -0.5: NAN, 2: NAN, 0.5: 0, NAN: NAN},
    "ndtr": {-INF: 0, INF: 1, NAN: NAN, 0: 0.5},
    "log_ndtr": {-INF: -INF, INF: 0, NAN: NAN},
    "erfcx": {-INF: INF, -30: INF, INF: 0, NAN: NAN, 0: 1},
    "i0": {-INF: INF, INF: INF, 2000: INF, 0: 1, NAN: NAN},
    "i0e": {-INF: 0, INF: 0, 0: 1, NAN: NAN},
    "i1": {-INF: -INF, INF: INF, -2000: -INF, 0: 0, NAN: NAN},
    "i1e": {-INF: 0, INF: 0, 0: 0, NAN: NAN},
    "stanh": {-INF: -1.7159, INF: 1.7159, NAN: NAN},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype, device):
    table = SPECIAL[name]
    got = getattr(tenon, name)(tenon.tensor(list(table), dtype=dtype, device=device))
    np.testing.assert_allclose(got.to("cpu").numpy(), list(table.values()), rtol=2e-7)


def test_special_values_of_zeta(device):
    x = tenon.tensor([1.0, 0.5, 2.0, 2.0, NAN, 2.0, INF], device=device)
    q = tenon.tensor([2.0, 2.0, 0.0, -1.5, 1.0, NAN, 2.0], device=device)
    want = [INF, NAN, INF, NAN, NAN, NAN, 0.0]
    np.testing.assert_array_equal(tenon.zeta(x, q).to("cpu").numpy(), want)


def derivatives(function, x, count, device="cpu"):
    x = tenon.tensor(x, dtype="float64", device=device, requires_grad=True)
    y, results = function(x), []
    for _ in range(count):
        (y,) = tenon.grad([y.sum()], [x], create_graph=True)
        results.append(y.detach().to("cpu").numpy().tolist())
    return results


# The power series of i0 and i1 at 0; derivatives of any order are functions of higher order there.
def test_derivatives_of_bessel_functions_at_zero(device):
    np.testing.assert_allclose(
        derivatives(tenon.i0, [0.0], 6, device),
        [[0], [1 / 2], [0], [3 / 8], [0], [5 / 16]],
        atol=1e-15,
    )
    np.testing.assert_allclose(
        derivatives(tenon.i1, [0.0], 5, device), [[1 / 2], [0], [3 / 8], [0], [5 / 16]], atol=1e-15
    )


# i1'' = (1 + 2 / x^2) i1 - i0 / x, from the differential equation.
def test_derivatives_of_bessel_functions_elsewhere(device):
    x = np.array([0.7, -3.0, 7.9, 8.1, 21.9, 22.1, 60.0])
    i0, i1 = (f(tenon.tensor(x)).numpy() for f in (tenon.i0, tenon.i1))
    first, second = derivatives(tenon.i1, x.tolist(), 2, device)
    np.testing.assert_allclose(first, i0 - i1 / x, rtol=2e-14)
    np.testing.assert_allclose(second, (1 + 2 / x**2) * i1 - i0 / x, rtol=2e-13)


# (order, argument): exp(-|x|) I_n(x)
BESSEL = {
    (0, 0.001): 0.9990007495835156,
    (0, -0.7): 0.5593055265070683,
    (0, 11.5): 0.1189895130094226,
    (0, 21.9): 0.08574846553893038,
    (0, -30.0): 0.0731459464822373,
    (0, 90.0): 0.04211098388079412,
    (0, 150.0): 0.03260074788391805,
    (0, 10000.0): 0.003989472674604732,
    (2, 0.001): 1.2487507288542742e-07,
    (2, -0.7): 0.03167700432779025,
    (2, 11.5): 0.09921696255234856,
    (2, 21.9): 0.07809848486553167,
    (2, -30.0): 0.06835152444232746,
    (2, 90.0): 0.04118039773056158,
    (2, 150.0): 0.0321675225987334,
    (2, 10000.0): 0.003988674819965536,
    (3, 0.001): 2.0812511713977248e-11,
    (3, -0.7): -0.0036585294610887668,
    (3, 11.5): 0.0791819172838806,
    (3, 21.9): 0.06950272492795657,
    (3, -30.0): -0.06280279400633723,
    (3, 90.0): 0.040046136861328456,
    (3, 150.0): 0.03163409578621605,
    (3, 10000.0): 0.003987677726055676,
    (12, 0.001): 5.091770279993888e-49,
    (12, -0.7): 3.5364249425423972e-15,
    (12, 11.5): 0.0002904390384984002,
    (12, 21.9): 0.003225323731319314,
    (12, -30.0): 0.00658419939201061,
    (12, 90.0): 0.018859729194838824,
    (12, 150.0): 0.020145566817740844,
    (12, 10000.0): 0.003960850208110636,
}


@pytest.fixture(scope="module")
def bessel_ie(tmp_path_factory):
    """The internal operator that gradients call."""
    path = tmp_path_factory.mktemp("bessel") / "bessel.yaml"
    path.write_text(
        "namespace: bessel_probe\nops:\n- op: bessel\n  doc: The internal operator.\n"
        "  sig: (int n, Tensor x) -> Tensor\n  kind: composite\n  decompose: bessel_ie(n, x)\n"
    )
    return tenon.ops.load(path).bessel


@pytest.mark.parametrize("dtype, ulp", [("float64", 2.2e-16), ("float32", 1.2e-7)])
def test_bessel_functions_of_higher_order(bessel_ie, dtype, ulp, device):
    for (order, x), want in BESSEL.items():
        if dtype == "float64" or abs(want) > 1e-30:
            got = bessel_ie(order, tenon.tensor([x], dtype=dtype, device=device)).item()
            assert got == pytest.approx(want, rel=2 * close(device) * ulp, abs=0)


def test_too_many_derivatives_of_bessel_functions_are_an_error(bessel_ie):
    with pytest.raises(ValueError, match=r"an order n from 0 to 12, got 13; derivatives of i0 and"):
        bessel_ie(13, tenon.tensor([1.0]))


# d^2/dx^2 log(ndtr(x)) goes to -1, and erfcx'(x) to -1 / (sqrt(pi) x^2).
def test_derivatives_far_out_do_not_cancel(device):
    first, second = derivatives(tenon.log_ndtr, [-1e4, -1e8, 3.0], 2, device)
    np.testing.assert_allclose(first[:2], [1e4 + 1e-4, 1e8], rtol=1e-12)
    np.testing.assert_allclose(second[:2], [-1.0, -1.0], rtol=1e-7)
    ((slope, at_half),) = derivatives(tenon.erfcx, [1e6, 0.5], 1, device)
    assert slope == pytest.approx(-1 / (math.sqrt(math.pi) * 1e12), rel=1e-11)
    assert at_half == pytest.approx(-0.512688822902587, rel=1e-14)


def test_inverses(device):
    skip_unserved(device, "float64")
    x = tenon.linspace(-5.0, 2.0, 57, dtype="float64", device=device)
    np.testing.assert_allclose(
        tenon.ndtri(tenon.ndtr(x)).to("cpu").numpy(), x.to("cpu").numpy(), rtol=4e-14, atol=1e-15
    )


def test_arguments_without_a_gradient_are_errors():
    x = tenon.tensor([2.0], requires_grad=True)
    for name, call in {
        "zeta": lambda: tenon.zeta(x, 1.0),
        "gammainc": lambda: tenon.gammainc(x, 1.0),
        "gammaincc": lambda: tenon.gammaincc(x, 1.0),
    }.items():
        with pytest.raises(
            RuntimeError, match=rf"\[{name}\] has no gradient for `[ax]`; call it on a"
        ):
            (call() + x).sum().backward()


def test_multigammaln_outside_of_its_domain(device):
    x = tenon.tensor([0.9, 1.0, 1.1], dtype="float64", device=device)
    got = tenon.multigammaln(x, 3).to("cpu").numpy()
    assert np.isnan(got[:2]).all() and np.isfinite(got[2])


@pytest.mark.parametrize("name", ["erfinv", "ndtri"])
def test_inverses_of_distributions_in_float32_are_near_those_of_float64(name):
    """Polynomials of fewer terms serve float32: within 4 units of the last place of what float64 has."""
    grid = np.linspace(-1, 1, 30_001) if name == "erfinv" else np.geomspace(1e-37, 0.5, 30_000)
    x = np.nextafter(grid.astype(np.float32), np.float32(0 if name == "erfinv" else 0.25))
    function = getattr(tenon, name)
    got = function(tenon.tensor(x)).numpy()
    expected = function(tenon.tensor(x.astype(np.float64))).numpy()
    # The difference from a half is exact, but the logarithm of 4 p (1 - p) is of a rounded product.
    units = np.abs(got - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert units.max() < 4
