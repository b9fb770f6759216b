# SPDX-License-Identifier: Apache-2.0
"""Samples of distributions, made of the operators uniform and normal.

All take their numbers from the device's one stream (tenon.random), or from that of the keyword
`generator`, so that a seed fixes them, on any device that runs operators. Parameters are numbers or tensors, which broadcast with each other
and with `shape`; results have the parameters' dtype, float32 for numbers. Samples are constants:
no gradient flows into the parameters.

gamma(), and what is made of it, and poisson() and binomial() with large means, draw and reject:
they read from the device how many samples are still missing, a few times a call.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tenon import _core
from tenon._core import Tensor, dtype
from tenon._core import operator as _operator
from tenon._tensor.array_api import broadcast_shapes
from tenon._tensor.generators import draw_from

Parameter: TypeAlias = bool | int | float | Tensor
Shape: TypeAlias = int | Sequence[int] | None
Function: TypeAlias = Callable[..., Tensor]


def _shape_of(shape: Shape) -> tuple[int, ...] | None:
    return None if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)


def _parameters(
    name: str, values: Sequence[Parameter], shape: Shape, wanted_dtype: Any, device: Any
) -> tuple[list[Tensor], dtype]:
    """The parameters as tensors of the shape and device of the result, in its dtype, but in
    float32 at least: a uniform number near 1 must not round to it. And the result's dtype."""
    tensors = [each for each in values if isinstance(each, Tensor)]
    if device is None and tensors:
        device = tensors[0].device
    if wanted_dtype is None:
        floating = [x.dtype for x in tensors if x.dtype.is_floating_point]
        result = functools.reduce(_core._promote, floating) if floating else _core.float32
    else:
        result = _core.dtype(wanted_dtype)
    if not result.is_floating_point:
        raise TypeError(f"{name}(): expected a floating dtype, got {result}")
    compute = result if result in (_core.float32, _core.float64) else _core.float32
    made = [
        each.detach().to(dtype=compute, device=device)
        if isinstance(each, Tensor)
        else _core.tensor(each, dtype=compute, device=device)
        for each in values
    ]
    wanted = _shape_of(shape)
    shapes = [tuple(x.shape) for x in made]
    goal = "each other" if wanted is None else f"shape {wanted}"
    try:
        common = broadcast_shapes(*shapes, *([] if wanted is None else [wanted]))
    except ValueError:
        common = None
    if common is None or (wanted is not None and common != wanted):
        raise ValueError(
            f"{name}(): expected parameters that broadcast to {goal}, got shapes "
            f"{', '.join(map(str, shapes))}"
        )
    return [_operator("expand")(x, common) for x in made], result


def _require(name: str, holds: Tensor, what: str) -> None:
    """An error unless all elements hold; NaN does not."""
    if holds.device.kind != "meta" and not bool(holds.all()):
        raise ValueError(f"{name}(): expected {what}")


def _uniform(like: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    return _operator("uniform")(like.shape, low, high, dtype=like.dtype, device=like.device)


def _open_uniform(like: Tensor) -> Tensor:
    """Uniform in (0, 1]: its logarithm is finite."""
    return 1 - _uniform(like)


def _normal(like: Tensor) -> Tensor:
    return _operator("normal")(like.shape, dtype=like.dtype, device=like.device)


def _where(condition: Tensor, x: Any, y: Any) -> Tensor:
    return _operator("where")(condition, x, y)


def _sampler(function: Function) -> Function:
    """A function that draws, with the keyword `generator`, and without a gradient."""

    @functools.wraps(function)
    def wrapper(*args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        previous = _core._set_grad_enabled(False)
        try:
            if generator is None:
                return function(*args, **kwargs)
            return draw_from(generator, function, *args, **kwargs)
        finally:
            _core._set_grad_enabled(previous)

    own = inspect.signature(function)
    keyword = inspect.Parameter("generator", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*own.parameters.values(), keyword]
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


# -- by inversion ----------------------------------------------------------------------------------


@_sampler
def exponential(
    rate: Parameter = 1.0, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Waiting times of events that come at `rate`, which is positive; the mean is 1 / rate."""
    (r,), result = _parameters("exponential", [rate], shape, dtype, device)
    _require("exponential", r > 0, "a positive rate")
    return (-_operator("log")(_open_uniform(r)) / r).to(result)


@_sampler
def geometric(
    p: Parameter, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Number of trials up to the first success of probability `p` in (0, 1]; 1, 2, 3, ..."""
    (p,), result = _parameters("geometric", [p], shape, dtype, device)
    _require("geometric", (p > 0) & (p <= 1), "p above 0 and at most 1")
    trials = _operator("ceil")(_operator("log")(_open_uniform(p)) / _operator("log1p")(-p))
    return _operator("maximum")(_where(p >= 1, 1.0, trials), 1.0).to(result)


@_sampler
def cauchy(
    location: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """The Cauchy distribution around `location`; half of it is within `scale`, which is
    positive."""
    (location, scale), result = _parameters("cauchy", [location, scale], shape, dtype, device)
    _require("cauchy", scale > 0, "a positive scale")
    angle = math.pi * (_uniform(location) - 0.5)
    return (location + scale * _operator("tan")(angle)).to(result)


@_sampler
def log_normal(
    mean: Parameter = 0.0,
    std: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Numbers whose logarithm is normal, of this mean and standard deviation."""
    (mean, std), result = _parameters("log_normal", [mean, std], shape, dtype, device)
    _require("log_normal", std >= 0, "std of at least 0")
    return _operator("exp")(mean + std * _normal(mean)).to(result)


@_sampler
def truncated_normal(
    mean: Parameter = 0.0,
    std: Parameter = 1.0,
    low: Parameter = -2.0,
    high: Parameter = 2.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Normal numbers of this mean and deviation, of those between `low` and `high`."""
    (mean, std, low, high), result = _parameters(
        "truncated_normal", [mean, std, low, high], shape, dtype, device
    )
    _require("truncated_normal", (low < high) & (std > 0), "low < high and a positive std")
    a, b = (low - mean) / std, (high - mean) / std

    def draw() -> tuple[Tensor, Tensor]:
        # From the interval's point of the largest density on: exponential in a tail (Robert,
        # Simulation of truncated normal variables, 1995), uniform in a short interval, normal
        # otherwise.
        tail = _operator("maximum")(a, -b)  # the distance of an interval on one side
        rate = (tail + _operator("sqrt")(tail * tail + 4)) / 2
        steps = tail - _operator("log")(_open_uniform(a)) / _where(tail > 0, rate, 1.0)
        in_tail = _where(a > 0, steps, -steps)
        chance_tail = _operator("exp")(-0.5 * (steps - rate) ** 2)
        inside = a + (b - a) * _uniform(a)
        peak = _operator("clip")(_operator("zeros_like")(a), a, b)
        chance_inside = _operator("exp")(0.5 * (peak * peak - inside * inside))
        is_short = (b - a) < _where(tail > 0, 1 / rate, 2.0)
        candidate = _where(is_short, inside, _where(tail > 0, in_tail, _normal(a)))
        chance = _where(is_short, chance_inside, _where(tail > 0, chance_tail, 1.0))
        fits = (candidate >= a) & (candidate <= b)
        return candidate, fits & (_uniform(a) <= chance)

    return _operator("clip")(mean + std * _until_accepted(draw), low, high).to(result)


def _until_accepted(draw: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
    """Draw all samples again and again, keeping each element's first accepted candidate."""
    result, accepted = draw()
    if result.device.kind == "meta":
        return result
    for _ in range(1000):
        if bool(accepted.all()):
            return result
        candidate, fits = draw()
        result = _where(accepted, result, candidate)
        accepted = accepted | fits
    raise RuntimeError(
        "a sampler rejected 1000 candidates; expected parameters that are finite and in range"
    )


# -- gamma and its relatives -----------------------------------------------------------------------


def _gamma_factors(alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Marsaglia and Tsang, A simple method for generating gamma variables (2000). Below 1, where their
    method does not apply, gamma(alpha + 1) times a power of a uniform number. A sample is the product of
    the first two results and the exponential of the third, which underflows for tiny `alpha`."""
    small = alpha < 1
    d = _where(small, alpha + 1, alpha) - 1 / 3
    c = 1 / _operator("sqrt")(9 * d)

    def draw() -> tuple[Tensor, Tensor]:
        x = _normal(alpha)
        v = (1 + c * x) ** 3
        positive = v > 0
        logarithm = _operator("log")(_where(positive, v, 1.0))
        bound = 0.5 * x * x + d * (1 - v + logarithm)
        return v, positive & (_operator("log")(_open_uniform(alpha)) < bound)

    v = _until_accepted(draw)
    log_boost = _operator("log")(_open_uniform(alpha)) / alpha
    return d, v, _where(small, log_boost, 0.0)


def _standard_gamma(alpha: Tensor) -> Tensor:
    d, v, log_boost = _gamma_factors(alpha)
    return d * v * _operator("exp")(log_boost)


def log_standard_gamma_sample(alpha: Tensor) -> Tensor:
    """Logarithms of gamma samples, which are finite for every positive `alpha`."""
    d, v, log_boost = _gamma_factors(alpha)
    return _operator("log")(d) + _operator("log")(v) + log_boost


@_sampler
def gamma(
    concentration: Parameter,
    rate: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """The gamma distribution of mean concentration / rate; both are positive. (NumPy has 1 / rate,
    the scale.)"""
    (alpha, beta_), result = _parameters("gamma", [concentration, rate], shape, dtype, device)
    _require("gamma", (alpha > 0) & (beta_ > 0), "a positive concentration and rate")
    return (_standard_gamma(alpha) / beta_).to(result)


@_sampler
def beta(
    a: Parameter, b: Parameter, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The beta distribution on [0, 1] of mean a / (a + b); both are positive."""
    (a, b), result = _parameters("beta", [a, b], shape, dtype, device)
    _require("beta", (a > 0) & (b > 0), "positive parameters")
    x, y = _standard_gamma(a), _standard_gamma(b)
    total = x + y
    # Both underflow where both parameters are tiny: then the sample is 0 or 1, by their sizes.
    edge = (_uniform(total) * (a + b) < a).to(total.dtype)
    safe = _where(total > 0, total, 1.0)
    return _where(total > 0, x / safe, edge).to(result)


@_sampler
def dirichlet(
    concentration: Tensor, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Vectors of probabilities along the last axis, which `concentration`, positive, has as well;
    `shape` is that of the axes in front."""
    if not isinstance(concentration, Tensor) or concentration.ndim < 1:
        raise TypeError("dirichlet(): expected a tensor of at least one axis as concentration")
    whole = None if shape is None else (*(_shape_of(shape) or ()), concentration.shape[-1])
    (alpha,), result = _parameters("dirichlet", [concentration], whole, dtype, device)
    _require("dirichlet", alpha > 0, "a positive concentration")
    parts = _standard_gamma(alpha)
    return (parts / _operator("sum")(parts, [-1], True)).to(result)


@_sampler
def chi_square(
    df: Parameter, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Sums of the squares of `df` normal numbers; `df` is positive, and need not be whole."""
    (df,), result = _parameters("chi_square", [df], shape, dtype, device)
    _require("chi_square", df > 0, "positive degrees of freedom")
    return (2 * _standard_gamma(df / 2)).to(result)


@_sampler
def student_t(
    df: Parameter,
    location: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Student's t of `df` degrees of freedom, which is positive, moved and scaled."""
    (df, location, scale), result = _parameters(
        "student_t", [df, location, scale], shape, dtype, device
    )
    _require("student_t", (df > 0) & (scale > 0), "positive degrees of freedom and scale")
    ratio = _operator("sqrt")(df / (2 * _standard_gamma(df / 2)))
    return (location + scale * _normal(df) * ratio).to(result)


@_sampler
def von_mises(
    location: Parameter,
    concentration: Parameter,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Angles in [-pi, pi] around `location`, the more concentrated the larger `concentration`,
    which is positive (Best and Fisher, Efficient simulation of the von Mises distribution,
    1979)."""
    (location, kappa), result = _parameters(
        "von_mises", [location, concentration], shape, dtype, device
    )
    _require("von_mises", kappa > 0, "a positive concentration")
    k = kappa.to(_core.float64)  # r cancels for small and for large concentrations
    tau = 1 + _operator("sqrt")(1 + 4 * k * k)
    rho = (tau - _operator("sqrt")(2 * tau)) / (2 * k)
    r = _where(k < 1e-4, 1 / k + k, (1 + rho * rho) / (2 * rho))

    def draw() -> tuple[Tensor, Tensor]:
        z = _operator("cos")(math.pi * _uniform(k))
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        u = _open_uniform(k)
        accepted = (c * (2 - c) > u) | (_operator("log")(c / u) + 1 >= c)
        angle = _operator("acos")(_operator("clip")(f, -1.0, 1.0))
        return _where(_uniform(k) < 0.5, -angle, angle), accepted

    angle = _until_accepted(draw) + location.to(_core.float64)
    turns = _operator("floor")((angle + math.pi) / (2 * math.pi))
    return (angle - 2 * math.pi * turns).to(result)


# -- counts ----------------------------------------------------------------------------------------

_FEW = 10.0  # the mean from which on counts are drawn by rejection


def _counted_poisson(rate: Tensor) -> Tensor:
    """Sums of waiting times, up to 1 (Knuth): as many steps as the largest count."""
    count = _operator("zeros_like")(rate)
    time = -_operator("log")(_open_uniform(rate))
    while bool((time <= rate).any()):
        count = count + (time <= rate).to(rate.dtype)
        time = time - _operator("log")(_open_uniform(rate))
    return count


def _rejected_poisson(rate: Tensor) -> Tensor:
    """Hormann, The transformed rejection method for generating Poisson random variables (1993):
    PTRS."""
    log_rate = _operator("log")(rate)
    b = 0.931 + 2.53 * _operator("sqrt")(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def draw() -> tuple[Tensor, Tensor]:
        u, v = _uniform(rate) - 0.5, _open_uniform(rate)
        us = 0.5 - _operator("abs")(u)
        k = _operator("floor")((2 * a / us + b) * u + rate + 0.43)
        whole = _operator("maximum")(k, 0.0)
        bound = whole * log_rate - rate - _operator("lgamma")(whole + 1)
        height = _operator("log")(v * inverse_alpha / (a / (us * us) + b))
        quick = (us >= 0.07) & (v <= v_r)
        possible = (k >= 0) & ((us >= 0.013) | (v <= us))
        return whole, quick | (possible & (height <= bound))

    return _until_accepted(draw)


@_sampler
def poisson(
    rate: Parameter, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Counts of events of which `rate`, at least 0, come on average; as whole numbers of a floating
    dtype."""
    (rate,), dtype_ = _parameters("poisson", [rate], shape, dtype, device)
    finite = _operator("isfinite")(rate)
    _require("poisson", (rate >= 0) & finite, "a finite rate of at least 0")
    if rate.device.kind == "meta":
        return rate.to(dtype_)
    wide = rate.to(_core.float64)  # counts and their logarithms need the digits
    many = wide >= _FEW
    result = _counted_poisson(_where(many, 0.0, wide))
    if bool(many.any()):
        result = _where(many, _rejected_poisson(_where(many, wide, _FEW)), result)
    return result.to(dtype_)


def _counted_binomial(n: Tensor, p: Tensor) -> Tensor:
    """Gaps between successes are geometric (Devroye, Non-uniform random variate generation,
    X.4)."""
    gap = _operator("log1p")(-_where(p > 0, p, 0.5))

    def step() -> Tensor:
        trials = _operator("floor")(_operator("log")(_open_uniform(n)) / gap) + 1
        return _where(p > 0, trials, math.inf)

    count, used = _operator("zeros_like")(n), step()
    while bool((used <= n).any()):
        count = count + (used <= n).to(n.dtype)
        used = used + step()
    return count


def _rejected_binomial(n: Tensor, p: Tensor) -> Tensor:
    """Hormann, The generation of binomial random variates (1993): BTRS, for n p >= 10 and p <=
    1/2."""
    lgamma = _operator("lgamma")
    spread = _operator("sqrt")(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    log_odds = _operator("log")(p / (1 - p))
    m = _operator("floor")((n + 1) * p)
    top = lgamma(m + 1) + lgamma(n - m + 1)

    def draw() -> tuple[Tensor, Tensor]:
        u, v = _uniform(n) - 0.5, _open_uniform(n)
        us = 0.5 - _operator("abs")(u)
        k = _operator("floor")((2 * a / us + b) * u + c)
        inside = (k >= 0) & (k <= n)
        whole = _operator("clip")(k, _operator("zeros_like")(n), n)
        quick = (us >= 0.07) & (v <= v_r)
        height = _operator("log")(v * alpha / (a / (us * us) + b))
        bound = top - lgamma(whole + 1) - lgamma(n - whole + 1) + (whole - m) * log_odds
        return whole, inside & (quick | (height <= bound))

    return _until_accepted(draw)


@_sampler
def binomial(
    n: Parameter, p: Parameter, shape: Shape = None, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """How many of `n` trials of probability `p` succeed; as whole numbers of a floating dtype."""
    (n, p), dtype_ = _parameters("binomial", [n, p], shape, dtype, device)
    is_whole = (n >= 0) & (_operator("floor")(n) == n)
    _require("binomial", is_whole & (p >= 0) & (p <= 1), "whole n of at least 0, and p in [0, 1]")
    if n.device.kind == "meta":
        return n.to(dtype_)
    trials, chance = n.to(_core.float64), p.to(_core.float64)
    rare = _operator("minimum")(chance, 1 - chance)
    many = trials * rare >= _FEW
    result = _counted_binomial(_where(many, 0.0, trials), rare)
    if bool(many.any()):
        drawn = _rejected_binomial(_where(many, trials, 100.0), _where(many, rare, 0.5))
        result = _where(many, drawn, result)
    return _where(chance > 0.5, trials - result, result).to(dtype_)


__all__ = [
    "beta",
    "binomial",
    "cauchy",
    "chi_square",
    "dirichlet",
    "exponential",
    "gamma",
    "geometric",
    "log_normal",
    "poisson",
    "student_t",
    "truncated_normal",
    "von_mises",
]
