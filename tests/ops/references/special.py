# SPDX-License-Identifier: Apache-2.0
"""Special functions, by other ways than those of the operators: the standard library and plain sums."""

import math
from statistics import NormalDist

import numpy as np

ndtr, ndtri = (
    np.vectorize(function, otypes=[float]) for function in (NormalDist().cdf, NormalDist().inv_cdf)
)


def erfinv(x):
    return ndtri((x + 1) / 2) / math.sqrt(2)


def log_ndtr(x):
    return np.log(ndtr(x))


@np.vectorize
def erfcx(x):
    return math.exp(x * x) * math.erfc(x)


@np.vectorize
def i0(x):
    return sum((x * x / 4) ** k / math.factorial(k) ** 2 for k in range(60))


@np.vectorize
def i1(x):
    terms = ((x * x / 4) ** k / math.factorial(k) / math.factorial(k + 1) for k in range(60))
    return x / 2 * sum(terms)


def i0e(x):
    return i0(x) * np.exp(-np.abs(x))


def i1e(x):
    return i1(x) * np.exp(-np.abs(x))


@np.vectorize
def zeta(x, q):
    """Two hundred terms, and three of Euler and Maclaurin's formula for the rest."""
    y = q + 200
    rest = y / (x - 1) + 0.5 + x / (12 * y) - x * (x + 1) * (x + 2) / (720 * y**3)
    return sum((q + k) ** -x for k in range(200)) + rest * y**-x


@np.vectorize
def multigammaln(x, p):
    return sum(math.lgamma(x - j / 2) for j in range(p)) + p * (p - 1) / 4 * math.log(math.pi)
