# SPDX-License-Identifier: Apache-2.0
"""Calls with the shapes and attributes of an operator's own samples, for operators without a rule."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array, representable

_CONSTANTS = {"inf": math.inf, "nan": math.nan}


def _generators(d):
    """The generators of samples (opdefs/README.md), with values and layouts that `d` draws."""

    def tensor(*shape):
        return d.tensor(shape)

    def integers(low, high, *shape, dtype="int64"):
        drawn = d.rng.integers(low, high, shape)
        return Array(np.asarray(drawn).astype(dtype), dtype, "plain")

    def written(numbers, dtype=None):
        values = np.asarray(numbers)
        dtype = dtype or (d.dtype if values.dtype.kind == "f" else str(values.dtype))
        return Array(representable(values, dtype), dtype, "plain")

    return _CONSTANTS | {
        "normal": tensor,
        "spread": tensor,
        "uniform": lambda low, high, *shape: d.tensor(shape),
        "integers": integers,
        "booleans": lambda *shape: d.booleans(shape),
        "array": written,
    }


def from_sample(d):
    """Arguments by name."""
    sample = d.choice(d.operator.samples)
    names = _generators(d)
    parameters = [p.name for p in d.operator.parameters]
    texts = dict(zip(parameters, sample["arguments"])) | sample["keywords"]
    return {name: eval(text, dict(names)) for name, text in texts.items()}
