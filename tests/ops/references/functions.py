# SPDX-License-Identifier: Apache-2.0
"""Functions of numbers that NumPy does not have."""

import math

import numpy as np

erf, erfc, lgamma = (
    np.vectorize(function, otypes=[float]) for function in (math.erf, math.erfc, math.lgamma)
)


def gelu(x, approximate=False):
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def polygamma(n, x):
    """The Hurwitz zeta function of n + 1: 40 terms, and Euler and Maclaurin's formula for the rest."""
    s, y = n + 1, x + 40
    rest = y ** (1 - s) / (s - 1) + y**-s / 2
    for order, number in ((1, 1 / 6), (3, -1 / 30), (5, 1 / 42)):
        rising = math.prod(range(s, s + order)) / math.factorial(order + 1)
        rest = rest + number * rising * y ** (-s - order)
    zeta = sum((x + k) ** -s for k in range(40)) + rest
    return (-1) ** s * math.factorial(n) * zeta
