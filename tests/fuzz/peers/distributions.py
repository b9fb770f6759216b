# SPDX-License-Identifier: Apache-2.0
"""Distributions beside PyTorch's and SciPy's: values, gradients, divergences, samples.

    python -m tests.fuzz.peers.distributions --minutes 5

Parameters are random, also at the ends of their ranges and large; values are samples of the peer
and the ends of the support. Own samples have a finite density, and follow SciPy's distribution
function or PyTorch's samples (Kolmogorov and Smirnov; 2,000 numbers, p of at least 1e-7, so that a
right program is called wrong once in ten million).
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats as stats
import tenon
import torch
from tenon import distributions as D

from .campaign import Checks, Difference, apart, main

P = torch.distributions

DIFFERENCES = [
    Difference(
        r"gradient of (Bernoulli|Geometric|Binomial|NegativeBinomial)\(.*probs=(0\.0|1\.0).*",
        "PyTorch clips probabilities of 0 and 1, which loses the gradient or scales it; here "
        "it is the one-sided derivative",
    ),
    Difference(
        r"(log_prob|entropy) of "
        r"(Bernoulli|Geometric|Binomial|NegativeBinomial)\(.*probs=(0\.0|1\.0).*",
        "PyTorch clips probabilities of 0 and 1, so that what is impossible has a finite "
        "logarithm; here it is -inf",
    ),
    Difference(r"gradient of Poisson\(rate=0\.0.*", "PyTorch gives NaN; the derivative at 0 is -1"),
    Difference(
        r"(log_prob|gradient) of Kumaraswamy\(.*",
        "PyTorch loses the digits of 1 - value ** concentration1; NumPy's log_prob agrees",
    ),
    Difference(
        r"(variance|stddev) of Cauchy\(.*",
        "the variance of a Cauchy variate does not exist: NaN here, infinite in PyTorch",
    ),
]


# -- what is drawn ---------------------------------------------------------------------------------


def positive(rng: random.Random) -> float:
    return 10 ** rng.uniform(-1, 1.3)


def wide(rng: random.Random) -> float:
    """A positive number that may be large."""
    return 10 ** rng.uniform(-1, 5) if rng.random() < 0.3 else positive(rng)


def real(rng: random.Random) -> float:
    return rng.gauss(0, 2)


def unit(rng: random.Random) -> float:
    """A probability, sometimes a certain one."""
    x = rng.random()
    return float(x < 0.05) if x < 0.1 else rng.uniform(0.01, 0.99)


def inner(rng: random.Random) -> float:
    return rng.uniform(0.01, 0.99)


def count(rng: random.Random) -> float:
    return float(rng.choice([1, 2, 5, 20, 63, 64, 65, 1000, 10**5]))


@dataclass(frozen=True)
class Family:
    """Parameters with how they are drawn; SciPy's distribution of them, if it has one; values at
    the ends."""

    parameters: dict[str, Callable[[random.Random], float]]
    scipy: Callable[..., Any] | None = None
    ends: tuple[float, ...] = ()


class Kumaraswamy:
    """In NumPy, as SciPy has none."""

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b = a, b

    def logpdf(self, x: Any) -> Any:
        a, b = self.a, self.b
        return np.log(a * b) + (a - 1) * np.log(x) + (b - 1) * np.log(-np.expm1(a * np.log(x)))

    def cdf(self, x: Any) -> Any:
        return -np.expm1(self.b * np.log(-np.expm1(self.a * np.log(x))))


FAMILIES = {
    "Normal": Family({"loc": real, "scale": positive}, stats.norm),
    "LogNormal": Family(
        {"loc": real, "scale": inner}, lambda m, s: stats.lognorm(s, scale=math.exp(m))
    ),
    "HalfNormal": Family({"scale": positive}, lambda s: stats.halfnorm(0, s), (0.0,)),
    "Laplace": Family({"loc": real, "scale": positive}, stats.laplace),
    "Cauchy": Family({"loc": real, "scale": positive}, stats.cauchy),
    "HalfCauchy": Family({"scale": positive}, lambda s: stats.halfcauchy(0, s), (0.0,)),
    "Gumbel": Family({"loc": real, "scale": positive}, stats.gumbel_r),
    "StudentT": Family({"df": wide, "loc": real, "scale": positive}, stats.t),
    "Exponential": Family({"rate": positive}, lambda r: stats.expon(0, 1 / r), (0.0,)),
    "Gamma": Family(
        {"concentration": wide, "rate": positive}, lambda a, r: stats.gamma(a, scale=1 / r)
    ),
    "Chi2": Family({"df": wide}, stats.chi2),
    "InverseGamma": Family(
        {"concentration": wide, "rate": positive}, lambda a, b: stats.invgamma(a, scale=b)
    ),
    "Beta": Family({"concentration1": wide, "concentration0": wide}, stats.beta),
    "Kumaraswamy": Family({"concentration1": positive, "concentration0": positive}, Kumaraswamy),
    "FisherSnedecor": Family({"df1": positive, "df2": positive}, stats.f),
    "Weibull": Family(
        {"scale": positive, "concentration": positive}, lambda s, k: stats.weibull_min(k, scale=s)
    ),
    "Pareto": Family({"scale": positive, "alpha": positive}, lambda s, a: stats.pareto(a, scale=s)),
    "Bernoulli": Family({"probs": unit}, stats.bernoulli, (0.0, 1.0)),
    "Geometric": Family(
        {"probs": lambda r: max(unit(r), 0.01)}, lambda p: stats.geom(p, -1), (0.0, 3.0)
    ),
    "Poisson": Family(
        {"rate": lambda r: 0.0 if r.random() < 0.1 else wide(r)}, stats.poisson, (0.0, 2.0)
    ),
    "Binomial": Family({"total_count": count, "probs": unit}, stats.binom, (0.0, 1.0)),
    "NegativeBinomial": Family(
        {"total_count": wide, "probs": inner}, lambda n, p: stats.nbinom(n, 1 - p), (0.0, 4.0)
    ),
}
DISCRETE = {"Bernoulli", "Geometric", "Poisson", "Binomial", "NegativeBinomial"}
# PyTorch and SciPy lose digits themselves where parameters are large; their tests of values say
# 1e-8 elsewhere.
LARGE = 200.0


def text(parameters: dict[str, float]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def made(
    name: str, parameters: dict[str, float], gradients: bool = False
) -> tuple[Any, Any, list, list]:
    ours = {
        k: tenon.tensor(v, tenon.float64, requires_grad=gradients) for k, v in parameters.items()
    }
    theirs = {
        k: torch.tensor(v, dtype=torch.float64, requires_grad=gradients)
        for k, v in parameters.items()
    }
    if name == "Binomial":
        theirs["total_count"] = theirs["total_count"].detach()
    a, b = getattr(D, name)(**ours), getattr(P, name)(**theirs)
    return a, b, list(ours.values()), list(theirs.values())


def tolerance(parameters: dict[str, float]) -> tuple[float, float]:
    largest = max(map(abs, parameters.values()))
    return 1e-7, 1e-9 * max(largest, 1.0) if largest > LARGE else 1e-9


def drawn_values(theirs: Any, family: Family) -> np.ndarray:
    with torch.no_grad():
        values = theirs.sample([6]).numpy()
    return np.concatenate([values, family.ends])


def families(rng: random.Random) -> Checks:
    """One distribution of numbers: all that both libraries have of it."""
    torch.manual_seed(rng.getrandbits(31))
    name = rng.choice(sorted(FAMILIES))
    family = FAMILIES[name]
    parameters = {k: draw(rng) for k, draw in family.parameters.items()}
    label = f"{name}({text(parameters)})"
    relative, absolute = tolerance(parameters)
    a, b, _, _ = made(name, parameters)
    values = drawn_values(b, family)
    scipy = family.scipy(*parameters.values()) if family.scipy else None
    x, y = tenon.tensor(values), torch.tensor(values)
    got = a.log_prob(x).numpy()
    if scipy is not None:
        log_density = scipy.logpmf if name in DISCRETE else scipy.logpdf
        want = log_density(values)
        yield f"scipy log_prob of {label}", apart(got, want, relative, absolute)
        below = a.cdf(x).numpy()
        yield f"scipy cdf of {label}", apart(below, scipy.cdf(values), 1e-6, 1e-9)
    yield f"log_prob of {label}", apart(got, b.log_prob(y).numpy(), relative, absolute)
    for what in ("mean", "variance", "stddev"):
        try:
            want = getattr(b, what).numpy()
        except NotImplementedError:
            continue
        yield f"{what} of {label}", apart(getattr(a, what).numpy(), want, 1e-6, 1e-9)
    try:
        want = b.entropy().numpy()
    except NotImplementedError:
        want = None
    if want is not None and not (name == "Binomial" and parameters["total_count"] > 1000):
        yield f"entropy of {label}", apart(a.entropy().numpy(), want, relative, absolute)
    shares = np.array([0.001, 0.3, 0.5, 0.9, 0.9999])
    try:
        want = b.icdf(torch.tensor(shares)).numpy()
    except NotImplementedError:
        want = None
    if want is not None:
        yield f"icdf of {label}", apart(a.icdf(tenon.tensor(shares)).numpy(), want, 1e-6, 1e-9)


def gradients(rng: random.Random) -> Checks:
    """Gradients of log_prob and entropy by every parameter and by the value."""
    torch.manual_seed(rng.getrandbits(31))
    name = rng.choice(sorted(FAMILIES))
    family = FAMILIES[name]
    parameters = {k: draw(rng) for k, draw in family.parameters.items()}
    label = f"gradient of {name}({text(parameters)})"
    a, b, ours, theirs = made(name, parameters, True)
    values = drawn_values(b, family)[:6] if family.ends != (0.0,) else drawn_values(b, family)
    x = tenon.tensor(values, requires_grad=name not in DISCRETE)
    y = torch.tensor(values, requires_grad=name not in DISCRETE)
    if name not in DISCRETE:
        ours, theirs = [*ours, x], [*theirs, y]
    a.log_prob(x).sum().backward()
    b.log_prob(y).sum().backward()
    for p, q in zip(ours, theirs):
        if q.requires_grad and q.grad is not None:
            scale = 1e-9 * max(1.0, *map(abs, parameters.values()))
            yield label, apart(p.grad.numpy(), q.grad.numpy(), 1e-6, scale)


def choices(rng: random.Random) -> Checks:
    """Categories, with some that are ruled out."""
    n, rows = rng.randint(2, 6), rng.randint(1, 3)
    numbers = np.random.default_rng(rng.getrandbits(63))
    logits = numbers.normal(size=(rows, n)) * rng.choice([1, 10])
    ruled_out = numbers.random(size=(rows, n)) < 0.25
    ruled_out[:, 0] = False
    logits[ruled_out] = -math.inf
    value = numbers.integers(0, n, size=rows)
    one_hot = np.eye(n)[value]
    label = f"(logits={logits.tolist()})"
    ours, theirs = (
        tenon.tensor(logits, requires_grad=True),
        torch.tensor(logits, requires_grad=True),
    )
    a, b = D.Categorical(logits=ours), P.Categorical(logits=theirs, validate_args=False)
    entropy = a.entropy()
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    yield (
        f"entropy of Categorical{label}",
        apart(entropy.detach().numpy(), stats.entropy(p, axis=-1), 1e-9, 1e-12),
    )
    got, want = a.log_prob(tenon.tensor(value)), b.log_prob(torch.tensor(value))
    yield (
        f"log_prob of Categorical{label}",
        apart(got.detach().numpy(), want.detach().numpy(), 1e-9, 1e-12),
    )
    hot = D.OneHotCategorical(logits=ours).log_prob(tenon.tensor(one_hot))
    yield (
        f"log_prob of OneHotCategorical{label}",
        apart(hot.detach().numpy(), got.detach().numpy(), 1e-9, 1e-12),
    )
    counts = numbers.multinomial(4, p)
    many = D.Multinomial(4, logits=ours).log_prob(tenon.tensor(counts.astype("float64")))
    want = [stats.multinomial(4, row).logpmf(c) for row, c in zip(p, counts)]
    yield f"log_prob of Multinomial{label}", apart(many.detach().numpy(), want, 1e-7, 1e-9)
    finite = (entropy + many).sum()
    finite.backward()
    yield (
        f"gradient of choices{label}",
        None if np.isfinite(ours.grad.numpy()).all() else str(ours.grad.tolist()),
    )
    other = np.where(ruled_out, -math.inf, numbers.normal(size=(rows, n)))
    divergence = D.kl_divergence(
        D.Categorical(logits=ours), D.Categorical(logits=tenon.tensor(other))
    )
    q = np.exp(other - other.max(-1, keepdims=True))
    q /= q.sum(-1, keepdims=True)
    want = stats.entropy(p, q, axis=-1)
    yield f"divergence of Categorical{label}", apart(divergence.detach().numpy(), want, 1e-8, 1e-11)
    temperature = rng.uniform(0.2, 3)
    shares = numbers.dirichlet(np.ones(n))
    open_logits = numbers.normal(size=n)
    pair = []
    for library, module in ((tenon, D), (torch, P)):
        t = library.tensor(temperature, dtype=library.float64, requires_grad=True)
        d = module.RelaxedOneHotCategorical(t, logits=library.tensor(open_logits))
        y = d.log_prob(library.tensor(shares))
        y.backward()
        pair.append([float(y.item()), float(t.grad.item())])
    yield (
        f"gradient of RelaxedOneHotCategorical(temperature={temperature})",
        apart(pair[0], pair[1], 1e-7, 1e-9),
    )


def both(make: Callable[[Any, Any], Any], *arrays: np.ndarray) -> tuple[Any, Any, list, list]:
    """A distribution in both libraries, of tensors that record gradients."""
    ours = [tenon.tensor(x, requires_grad=True) for x in arrays]
    theirs = [torch.tensor(x, requires_grad=True) for x in arrays]
    return make(D, ours), make(P, theirs), ours, theirs


def vectors(rng: random.Random) -> Checks:
    """Distributions of vectors, and those made of others."""
    torch.manual_seed(rng.getrandbits(31))
    numbers = np.random.default_rng(rng.getrandbits(63))
    n, rows = rng.randint(2, 5), rng.randint(1, 3)
    root = numbers.normal(size=(rows, n, n))
    covariance = root @ root.transpose(0, 2, 1) + np.eye(n)
    shares = np.exp(numbers.normal(size=(rows, n)))
    location, scale = numbers.normal(size=(rows, n)), np.exp(numbers.normal(size=(rows, n)))
    temperature = np.array(rng.uniform(0.3, 3))
    kind = rng.choice(
        ["Dirichlet", "covariance", "precision", "mixture", "RelaxedBernoulli", "independent"]
    )
    if kind == "Dirichlet":
        a, b, ours, theirs = both(lambda m, t: m.Dirichlet(t[0]), shares * 10 ** rng.uniform(-1, 2))
    elif kind in ("covariance", "precision"):
        name = "covariance_matrix" if kind == "covariance" else "precision_matrix"
        a, b, ours, theirs = both(
            lambda m, t: m.MultivariateNormal(t[0], **{name: (t[1] + t[1].mT) / 2}),
            location,
            covariance,
        )
    elif kind == "mixture":
        a, b, ours, theirs = both(
            lambda m, t: m.MixtureSameFamily(m.Categorical(logits=t[0]), m.Normal(t[1], t[2])),
            numbers.normal(size=(rows, n)),
            location,
            scale,
        )
    elif kind == "RelaxedBernoulli":
        a, b, ours, theirs = both(
            lambda m, t: m.RelaxedBernoulli(t[0], logits=t[1]), temperature, location
        )
    else:
        a, b, ours, theirs = both(
            lambda m, t: m.Independent(m.Laplace(t[0], t[1]), 1), location, scale
        )
    with torch.no_grad():
        value = b.sample([4]).numpy()
    got, want = a.log_prob(tenon.tensor(value)), b.log_prob(torch.tensor(value))
    yield f"log_prob of {kind}", apart(got.detach().numpy(), want.detach().numpy(), 1e-7, 1e-8)
    if kind not in ("mixture", "RelaxedBernoulli"):
        more = a.entropy(), b.entropy()
        yield (
            f"entropy of {kind}",
            apart(more[0].detach().numpy(), more[1].detach().numpy(), 1e-8, 1e-9),
        )
        got, want = got.sum() + more[0].sum(), want.sum() + more[1].sum()
    for what in ("mean", "variance"):
        if kind == "RelaxedBernoulli":
            break
        pair = getattr(a, what), getattr(b, what)
        yield (
            f"{what} of {kind}",
            apart(pair[0].detach().numpy(), pair[1].detach().numpy(), 1e-8, 1e-10),
        )
    got.sum().backward()
    want.sum().backward()
    for p, q in zip(ours, theirs):
        yield f"gradient of {kind}", apart(p.grad.numpy(), q.grad.numpy(), 1e-6, 1e-8)
    own = a.sample([50])
    finite = bool(tenon.all(tenon.isfinite(a.log_prob(own))))
    yield f"density of samples of {kind}", None if finite else "some have none that is finite"


def singles(rng: random.Random) -> Checks:
    """float32 beside SciPy in float64: as far apart as rounding the value and the parameters moves
    it."""
    torch.manual_seed(rng.getrandbits(31))
    name = rng.choice(sorted(FAMILIES))
    family = FAMILIES[name]
    drawn = {k: draw(rng) for k, draw in family.parameters.items()}
    parameters = {k: float(np.float32(v)) for k, v in drawn.items()}
    assert family.scipy is not None
    peer = family.scipy(*parameters.values())
    log_density = peer.logpmf if name in DISCRETE else peer.logpdf
    values = drawn_values(made(name, parameters)[1], family).astype("float32")
    if name in ("Beta", "Kumaraswamy"):
        values = np.clip(values, 1e-4, 1 - 1e-4)
    ours = getattr(D, name)(**{k: tenon.tensor(v, tenon.float32) for k, v in parameters.items()})
    want = log_density(values.astype("float64"))
    eps, moved = 2.0**-24, np.zeros_like(want)
    if name not in DISCRETE:
        moved = np.abs(log_density(values * (1 + 8 * eps)) - want) + np.abs(
            log_density(values * (1 - 8 * eps)) - want
        )
    for key, number in parameters.items():
        for sign in (1, -1):
            near = {**parameters, key: number * (1 + sign * 8 * eps)}
            if name == "Binomial":
                near = parameters
            with np.errstate(all="ignore"):
                close = getattr(family.scipy(*near.values()), log_density.__name__)(values)
            moved = moved + np.nan_to_num(np.abs(close - want))
    moved = np.nan_to_num(moved, posinf=0)
    got = ours.log_prob(tenon.tensor(values)).numpy()
    largest = max(map(abs, parameters.values()))
    # Sums of terms as large as the parameters, which the formulas for large ones leave out from 64
    # on.
    slack = 1e-5 + 4 * eps * min(largest, 64) * 10 + 4e-4 * (largest > 64)
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(got - want) <= slack + moved + 2e-6 * np.abs(want)) | (got == want))
    detail = (
        f"got {got[bad][:1]}, expected {want[bad][:1]} at {values[bad][:1]}" if bad.any() else None
    )
    yield f"float32 log_prob of {name}({text(parameters)})", detail


PAIRS = (
    "Bernoulli Beta Cauchy Chi2 Exponential Gamma Geometric Gumbel HalfNormal Laplace "
    "LogNormal Normal Poisson"
).split()


def divergences(rng: random.Random) -> Checks:
    name = rng.choice(PAIRS)
    family = FAMILIES[name]
    both = [{k: draw(rng) for k, draw in family.parameters.items()} for _ in range(2)]
    label = f"divergence of {name}({text(both[0])}; {text(both[1])})"
    p, q = made(name, both[0]), made(name, both[1])
    relative, absolute = tolerance({**both[0], **{f"q{k}": v for k, v in both[1].items()}})
    want = P.kl_divergence(p[1], q[1]).numpy()
    if any(value in (0.0, 1.0) for each in both for value in each.values()):
        # At certain probabilities, by the definition.
        if name == "Bernoulli":
            x, y = both[0]["probs"], both[1]["probs"]
            want = stats.entropy([x, 1 - x], [y, 1 - y])
        elif name == "Poisson":
            x, y = both[0]["rate"], both[1]["rate"]
            want = y if x == 0 else math.inf
        else:
            return
    yield label, apart(D.kl_divergence(p[0], q[0]).numpy(), want, relative, absolute)


def samples(rng: random.Random) -> Checks:
    """Own samples have a finite density, and the distribution that they should have."""
    name = rng.choice(sorted(FAMILIES))
    family = FAMILIES[name]
    parameters = {k: draw(rng) for k, draw in family.parameters.items()}
    label = f"{name}({text(parameters)})"
    seed = rng.getrandbits(31)
    # Near 1 float32 is too coarse for shares of small concentrations.
    coarse = name in ("Beta", "Kumaraswamy")
    dtype = tenon.float64 if coarse else rng.choice([tenon.float32, tenon.float64])
    a = getattr(D, name)(**{k: tenon.tensor(v, dtype) for k, v in parameters.items()})
    tenon.manual_seed(seed)
    torch.manual_seed(seed)
    x = a.sample([2000])
    finite = bool(tenon.all(tenon.isfinite(a.log_prob(x))))
    yield (
        f"density of samples of {label} {dtype.name}",
        None if finite else "some have none that is finite",
    )
    drawn = x.to(tenon.float64).numpy()
    if name in DISCRETE:
        p = stats.ks_2samp(
            drawn, made(name, parameters)[1].sample([2000]).numpy(), method="asymp"
        ).pvalue
    else:
        assert family.scipy is not None
        p = stats.kstest(drawn, family.scipy(*parameters.values()).cdf).pvalue
    yield f"samples of {label} {dtype.name}", None if p > 1e-7 else f"p = {p:g}"


def case(rng: random.Random) -> Checks:
    return rng.choice(
        [families, families, gradients, choices, divergences, samples, vectors, singles]
    )(rng)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(case, DIFFERENCES, __doc__))
