# SPDX-License-Identifier: Apache-2.0
"""Numbers: ordinary ones, ties, and those at the edges of a dtype."""

from __future__ import annotations

import numpy as np

from ..arrays import COMPLEXES, FLOATS

# (largest, smallest normal, smallest subnormal, epsilon)
LIMITS = {
    "float64": (np.finfo(np.float64).max, 2.0**-1022, 2.0**-1074, 2.0**-52),
    "float32": (float(np.finfo(np.float32).max), 2.0**-126, 2.0**-149, 2.0**-23),
    "float16": (65504.0, 2.0**-14, 2.0**-24, 2.0**-10),
    "bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-133, 2.0**-7),
    "float8_e4m3": (448.0, 2.0**-6, 2.0**-9, 2.0**-3),
    "float8_e5m2": (57344.0, 2.0**-14, 2.0**-16, 2.0**-2),
}
LIMITS["complex64"], LIMITS["complex128"] = LIMITS["float32"], LIMITS["float64"]

# How often an array is of a kind; "smooth" suits finite differences.
KINDS = {
    "ordinary": 0.4,
    "ties": 0.15,
    "special": 0.2,
    "large": 0.08,
    "tiny": 0.07,
    "wide": 0.1,
}


def draw_kind(rng):
    return str(rng.choice(list(KINDS), p=list(KINDS.values())))


def draw_values(rng, shape, dtype, kind, domain=None):
    """An array of the carrier's numbers, not rounded to the dtype yet."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return _floats(rng, shape, dtype, kind, domain)
    if dtype in COMPLEXES:
        real, imaginary = (_floats(rng, shape, dtype, kind, domain) for _ in range(2))
        values = np.empty(shape, np.complex128)
        values.real, values.imag = real, imaginary
        return values
    return _integers(rng, shape, dtype, kind, domain)


def _floats(rng, shape, dtype, kind, domain):
    largest, normal, subnormal, epsilon = LIMITS[dtype]
    if domain == "unit":
        edges = [0.0, 1.0, 0.5, epsilon, 1 - epsilon]
        return _mixed(rng, rng.uniform(0, 1, shape), edges, 0.2 if kind == "special" else 0.0)
    if domain == "positive":
        return rng.uniform(0.1, 2, shape)
    if domain == "ordinary":
        return rng.standard_normal(shape) * 3
    if domain == "small":
        return rng.standard_normal(shape) * 0.3
    if kind == "ties":
        return rng.integers(-4, 5, shape) / 2.0
    if kind == "special":
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -0.5]
        edges += [largest, -largest, normal, -subnormal, 1 + epsilon]
        return _mixed(rng, rng.standard_normal(shape) * 3, edges, 0.4)
    if kind == "large":
        return rng.standard_normal(shape) * largest ** rng.uniform(0.3, 0.95)
    if kind == "tiny":
        return rng.standard_normal(shape) * normal ** rng.uniform(0.3, 1.0)
    if kind == "wide":
        return rng.standard_normal(shape) * 10.0 ** rng.uniform(-4, 4, shape)
    return rng.standard_normal(shape) * rng.choice([0.5, 1.0, 3.0])


def _integers(rng, shape, dtype, kind, domain):
    info = np.iinfo(dtype)
    low = max(info.min, 0 if domain in ("unit", "positive") else -9)
    values = rng.integers(low, 2 if domain == "unit" else 10, shape).astype(dtype)
    if kind in ("special", "large") and domain is None:
        edges = [info.min, info.max, info.max - 1, 0, 1, info.max // 2]
        values = np.where(
            rng.random(shape) < 0.4, np.array(edges, dtype)[rng.integers(0, 6, shape)], values
        )
    elif kind == "wide" and domain is None:
        values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.asarray(values).astype(dtype)


def _mixed(rng, values, edges, share):
    chosen = np.array(edges)[rng.integers(0, len(edges), values.shape if values.ndim else None)]
    return np.where(rng.random(np.shape(values)) < share, chosen, values)
