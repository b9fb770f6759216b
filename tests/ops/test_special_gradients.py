# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives at zeros, ties and ends of domains, where finite differences say
nothing. The values are those of the limit where it exists, else PyTorch's where it gives a number, with
the exceptions below.

Other than in PyTorch (2.15):
- elements on a bound of clip keep their gradient, and the gradient of hypot at the origin is zero;
- second derivatives at zero of norm, of pow for the exponent and of copysign are zero, not NaN;
- second derivatives of elu, celu and selu at zero lie between those of its sides."""

import math

import numpy as np
import pytest
import tenon

INF, NAN = math.inf, math.nan


def std(correction):
    return lambda x: tenon.std(x, None, correction)


def var(correction):
    return lambda x: tenon.var(x, None, correction)


def norm(order):
    return lambda x: tenon.norm(x, order)


def power(exponent):
    return lambda x: x**exponent


# name: (function, arguments, gradients of the sum, then those of the sum of all gradients or None)
TABLE = {
    "log_ndtr where erfcx overflows": (
        tenon.log_ndtr,
        [[80.0, -1e150]],
        [[0.0, 1e150]],
        [[0.0, -1.0]],
    ),
    "std of one": (std(0.0), [[2.0]], [[0.0]], [[0.0]]),
    "std of one, sample": (std(1.0), [[2.0]], [[NAN]], None),
    "std of equals": (std(0.0), [[2.0, 2.0, 2.0]], [[0.0] * 3], [[0.0] * 3]),
    "std of equals, sample": (std(1.0), [[2.0, 2.0, 2.0]], [[0.0] * 3], [[0.0] * 3]),
    "std of nothing to go by": (std(5.0), [[1.0, 2.0]], [[NAN, NAN]], None),
    "var of one": (var(0.0), [[2.0]], [[0.0]], [[0.0]]),
    "var of one, sample": (var(1.0), [[2.0]], [[NAN]], None),
    "var of one, more than a sample": (var(2.0), [[2.0]], [[NAN]], None),
    "var of equals": (var(1.0), [[2.0, 2.0]], [[0.0, 0.0]], [[0.0, 0.0]]),
    **{
        f"norm {order} of zeros": (norm(order), [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]])
        for order in (2.0, 1.0, 3.0, 1.5, 0.5, -1.0, INF, -INF)
    },
    "norm 2 with a zero": (norm(2.0), [[0.0, 3.0, 4.0]], [[0.0, 0.6, 0.8]], [[0.2, 0.032, -0.024]]),
    "norm 1 with a zero": (norm(1.0), [[0.0, 3.0]], [[0.0, 1.0]], [[0.0, 0.0]]),
    "norm inf with ties": (norm(INF), [[-3.0, 3.0, 1.0]], [[-0.5, 0.5, 0.0]], [[0.0] * 3]),
    "norm 0.5 with a zero": (norm(0.5), [[0.0, 3.0, 3.0]], [[0.0, 2.0, 2.0]], [[0.0, 0.0, 0.0]]),
    "hypot at the origin": (tenon.hypot, [[0.0], [0.0]], [[0.0], [0.0]], None),
    "hypot on an axis": (tenon.hypot, [[0.0], [4.0]], [[0.0], [1.0]], [[0.25], [0.0]]),
    "atan2 at the origin": (tenon.atan2, [[0.0], [0.0]], [[0.0], [0.0]], None),
    "atan2 on an axis": (tenon.atan2, [[0.0], [4.0]], [[0.25], [0.0]], [[-0.0625], [-0.0625]]),
    "atan2 of tiny numbers": (tenon.atan2, [[3e-200], [4e-200]], [[1.6e199], [-1.2e199]], None),
    "atan2 of huge numbers": (tenon.atan2, [[3e200], [4e200]], [[1.6e-201], [-1.2e-201]], None),
    "prod, one zero": (tenon.prod, [[0.0, 2.0, 3.0]], [[6.0, 0.0, 0.0]], [[5.0, 3.0, 2.0]]),
    "prod, two zeros": (tenon.prod, [[0.0, 0.0, 3.0]], [[0.0, 0.0, 0.0]], [[3.0, 3.0, 0.0]]),
    "prod, three zeros": (tenon.prod, [[0.0, 0.0, 0.0]], [[0.0] * 3], [[0.0] * 3]),
    "prod of one": (tenon.prod, [[0.0]], [[1.0]], [[0.0]]),
    "prod that overflows": (tenon.prod, [[1e-200, 1e200, 1e200]], [[INF, 1.0, 1.0]], None),
    "cumprod, one zero": (
        tenon.cumprod,
        [[2.0, 0.0, 3.0]],
        [[1.0, 8.0, 0.0]],
        [[4.0, 6.0, 2.0]],
    ),
    "cumprod, two zeros": (
        tenon.cumprod,
        [[0.0, 0.0, 3.0]],
        [[1.0, 0.0, 0.0]],
        [[4.0, 4.0, 0.0]],
    ),
    **{
        f"0 ** {exponent}": (power(exponent), [[0.0]], [[first]], [[second]])
        for exponent, first, second in (
            (0, 0.0, 0.0),
            (1, 1.0, 0.0),
            (2, 0.0, 2.0),
            (3, 0.0, 0.0),
            (0.5, INF, -INF),
            (1.5, 0.0, INF),
            (2.5, 0.0, 0.0),
            (-1, -INF, INF),
        )
    },
    "(-2) ** 0": (power(0), [[-2.0]], [[0.0]], [[0.0]]),
    "pow, zero base": (tenon.pow, [[0.0] * 3, [1.0, 2.0, 0.0]], [[1.0, 0, 0], [0.0] * 3], None),
    "pow, zero base, below": (tenon.pow, [[0.0], [-1.0]], [[-INF], [-INF]], None),
    "pow, zero exponent": (
        tenon.pow,
        [[2.0], [0.0]],
        [[0.0], [math.log(2)]],
        [[0.5], [0.5 + math.log(2) ** 2]],
    ),
    "pow of a number": (lambda y: tenon.pow(0.0, y), [[0.0, 1.0]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "sqrt": (tenon.sqrt, [[0.0]], [[INF]], [[-INF]]),
    "rsqrt": (tenon.rsqrt, [[0.0]], [[-INF]], [[INF]]),
    "abs": (tenon.abs, [[0.0]], [[0.0]], [[0.0]]),
    "sign": (tenon.sign, [[0.0]], [[0.0]], [[0.0]]),
    "log": (tenon.log, [[0.0]], [[INF]], [[-INF]]),
    "asin": (tenon.asin, [[1.0]], [[INF]], [[INF]]),
    "lgamma at a pole": (tenon.lgamma, [[0.0]], [[-INF]], [[INF]]),
    "digamma at a pole": (tenon.digamma, [[0.0, -1.0]], [[INF, INF]], [[-INF, NAN]]),
    "max, ties": (tenon.max, [[1.0, 3.0, 3.0]], [[0.0, 0.5, 0.5]], [[0.0] * 3]),
    "min, ties": (tenon.min, [[1.0, 1.0, 3.0]], [[0.5, 0.5, 0.0]], [[0.0] * 3]),
    **{
        name: (getattr(tenon, name), [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]], None)
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
    "fmax with NaN": (tenon.fmax, [[NAN, 1.0], [1.0, NAN]], [[0.0, 1.0], [1.0, 0.0]], None),
    "sort, ties": (
        lambda x: tenon.sort(x) * tenon.tensor([1.0, 2.0, 3.0], device=x.device),
        [[3.0, 1.0, 1.0]],
        [[3.0, 1.0, 2.0]],
        None,
    ),
    "max_pool1d, ties": (
        lambda x: tenon.max_pool1d(x, 2),
        [[[[1.0, 1.0, 2.0, 2.0]]]],
        [[[[1.0, 0.0, 1.0, 0.0]]]],
        None,
    ),
    "clip on its bounds": (
        lambda x: tenon.clip(x, -1.0, 1.0),
        [[-1.0, 0.0, 1.0]],
        [[1.0, 1.0, 1.0]],
        None,
    ),
    "relu": (tenon.relu, [[0.0]], [[0.0]], [[0.0]]),
    "relu6": (tenon.relu6, [[0.0, 6.0]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "hardtanh": (tenon.hardtanh, [[-1.0, 1.0]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "hardsigmoid": (tenon.hardsigmoid, [[-3.0, 3.0]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "hardswish": (tenon.hardswish, [[-3.0, 3.0]], [[0.0, 1.0]], [[0.0, 0.0]]),
    "hardshrink": (tenon.hardshrink, [[-0.5, 0.5]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "softshrink": (tenon.softshrink, [[-0.5, 0.5]], [[0.0, 0.0]], [[0.0, 0.0]]),
    "leaky_relu": (tenon.leaky_relu, [[0.0]], [[0.01]], [[0.0]]),
    "elu": (tenon.elu, [[0.0]], [[1.0]], None),
    "xlogy": (
        tenon.xlogy,
        [[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]],
        [[0.0, math.log(2), -INF], [NAN, 0.0, INF]],
        None,
    ),
    "copysign": (
        tenon.copysign,
        [[0.0, 2.0], [1.0, 0.0]],
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0, 0.0]] * 2,
    ),
    "logaddexp of nothing": (tenon.logaddexp, [[-INF], [-INF]], [[0.0], [0.0]], [[0.0], [0.0]]),
    "logsumexp of nothing": (
        lambda x: tenon.logsumexp(x, 0),
        [[-INF, -INF]],
        [[0.0, 0.0]],
        [[0.0, 0.0]],
    ),
    "imag of real numbers": (lambda x: x + tenon.imag(x), [[2.0]], [[1.0]], [[0.0]]),
}


def arrays(gradients, inputs):
    """None is a gradient of zero."""
    return [
        np.zeros(tuple(x.shape)) if g is None else g.detach().to("cpu").numpy()
        for g, x in zip(gradients, inputs)
    ]


@pytest.mark.parametrize("name", TABLE)
def test_derivatives_at_special_points(name, device):
    function, values, first, second = TABLE[name]
    inputs = [
        tenon.tensor(np.array(v, dtype=np.float64), device=device, requires_grad=True)
        for v in values
    ]
    grads = tenon.grad(function(*inputs).sum(), inputs, create_graph=True, allow_unused=True)
    for got, want in zip(arrays(grads, inputs), first):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-12, equal_nan=True)
    if second is None:
        return
    total = sum(g.sum() for g in grads if g is not None and g.requires_grad)
    again = [None] * len(inputs)
    if not isinstance(total, int):
        again = tenon.grad(total, inputs, allow_unused=True)
    for got, want in zip(arrays(again, inputs), second):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-12, equal_nan=True)


def hessian(function, values):
    x = tenon.tensor(values, dtype="float64", requires_grad=True)
    (slope,) = tenon.grad(function(x), x, create_graph=True)
    rows = [tenon.grad(part, x, retain_graph=True)[0].tolist() for part in slope]
    return rows


def test_hessians_of_prod_at_zeros():
    assert hessian(tenon.prod, [0.0, 2.0, 3.0]) == [[0, 3, 2], [3, 0, 0], [2, 0, 0]]
    assert hessian(tenon.prod, [0.0, 0.0, 3.0]) == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    assert hessian(tenon.prod, [0.0, 0.0, 0.0]) == [[0, 0, 0]] * 3


def test_third_derivatives_of_products_at_zeros():
    """d^3 / dx dy dz of x * y * z is 1, wherever that is."""
    for function in (tenon.prod, lambda x: tenon.cumprod(x)[2]):
        x = tenon.tensor([0.0, 0.0, 0.0], dtype="float64", requires_grad=True)
        result = function(x)
        for i in range(3):
            (slope,) = tenon.grad(result, x, create_graph=True)
            result = slope[i]
        assert result.item() == 1.0


def test_lgamma_differentiates_to_any_order():
    """At 1: psi and its derivatives, (-1)^(n + 1) n! zeta(n + 1)."""
    zeta = [1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.03692775514337]
    want = [-0.5772156649015329]
    want += [(-1) ** (n + 1) * math.factorial(n) * zeta[n - 1] for n in range(1, 5)]
    x = tenon.tensor([1.0], dtype="float64", requires_grad=True)
    result, got = tenon.lgamma(x), []
    for _ in want:
        (result,) = tenon.grad(result, x, create_graph=True)
        got.append(result.item())
    assert got == pytest.approx(want, rel=1e-14)


def test_curvature_of_coefficients_of_equal_variables():
    """The coefficient of two equal variables is the largest one, which clip must not make flat.

    Where one moves by t times a centered unit vector that is orthogonal to it, the coefficient is
    n / sqrt(n^2 + t^2), n being the norm of the centered variable.
    """
    x = np.array([-0.1650390625, -0.40234375, -0.0634765625])  # rounding makes it more than 1
    centered = x - x.mean()
    step = np.cross(centered, np.ones(3))
    step /= np.linalg.norm(step)
    x, step = tenon.tensor(x), tenon.tensor(step)
    t = tenon.tensor(0.0, dtype="float64", requires_grad=True)
    coefficient = tenon.corrcoef(tenon.stack([x, x + t * step]))[0, 1]
    (grad,) = tenon.grad(coefficient, t, create_graph=True)
    assert grad.item() == pytest.approx(0, abs=1e-14)
    assert tenon.grad(grad, t)[0].item() == pytest.approx(-1 / (centered @ centered))
