# SPDX-License-Identifier: Apache-2.0
"""Attributes that need no rule of their own: what the name and type of a parameter say."""

from __future__ import annotations

CHOICES = {
    "reduction": ["none", "mean", "sum"],
    "indexing": ["ij", "xy"],
}
FLOATS = {
    "eps": [1e-5, 1e-3, 1e-12],
    "p": [0.0, 0.25, 1.0],
    "lr": [0.01, 0.1],
    "ord": [2.0, 1.0, 3.0, float("inf"), float("-inf"), 0.0, 0.5, 4.0, -1.0],
    "rtol": [1e-5, 0.0, 0.1],
    "atol": [1e-8, 0.0, 0.1],
    "beta1": [0.9, 0.5],
    "beta2": [0.999, 0.9],
    "alpha": [0.99, 0.5, 1.0],
    "momentum": [0.9, 0.5],
    "dampening": [0.0, 0.1],
    "weight_decay": [0.0, 0.1],
    "correction": [0.0, 1.0, 0.5],
}
DTYPES = [
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64",
    "complex64 complex128",
]
# Numbers of Python lie in the domains of these attributes.
_POSITIVE = [1.0, 0.5, 2.0, 0.01, 10.0]


def draw_attribute(d, parameter, ndim):
    """A value for a parameter that is no tensor, or `absent` to leave it to its default."""
    if not parameter.required and d.chance(0.4):
        return absent
    if parameter.optional and d.chance(0.2):
        return None
    name, kind = parameter.name, parameter.type
    if name == "device" or (name == "dropout" and d.operator.name != "dropout"):
        return absent
    if kind == "bool":
        return d.chance(0.5)
    if kind == "dtype":
        return d.choice(" ".join(DTYPES).split())
    if kind == "str":
        return d.choice(CHOICES[name]) if name in CHOICES else absent
    if kind == "int[]" and name == "axis":
        return d.axis(ndim) if d.chance(0.3) else d.axes(ndim)
    if kind == "int[]":
        return list(d.shape())
    if kind == "int" and name.startswith("axis"):
        return d.axis(ndim)
    if kind == "int" and name in ("diagonal", "offset"):
        return d.integer(-4, 4)
    if kind == "int":
        return d.integer(1, 4)
    if kind == "float":
        return d.choice(FLOATS.get(name, _POSITIVE))
    if kind == "Scalar":
        return d.number()
    return absent


absent = object()
