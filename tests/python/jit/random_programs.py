# SPDX-License-Identifier: Apache-2.0
"""Random programs of elementwise operators: many dtypes, broadcasting, numbers, masks, conversions, several results; and
of steps along rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tenon

UNARY = """exp tanh sigmoid abs negative square relu sin cos floor sign erf expm1 atan gelu silu reciprocal sqrt log1p
isnan logical_not isfinite round""".split()
BINARY = """add subtract multiply divide maximum minimum greater less_equal equal atan2 hypot fmod remainder pow
floor_divide logical_and logical_or not_equal copysign""".split()
REDUCTIONS = "sum max min mean prod any all var logsumexp".split()
ROWWISE = "softmax log_softmax layer_norm rms_norm".split()
FLOATS = ["float32", "float64", "bfloat16", "float16"]
DTYPES = [*FLOATS, "int32", "int64", "bool", "uint8", "int8"]


def random_program(
    seed: int, shape: tuple[int, ...], device: str, rows: bool = False
) -> tuple[Callable[..., Any], tuple[tenon.Tensor, ...]]:
    """A function of tensors, and arguments for it. A step that refuses its operands gives the value before it. With `rows`
    some steps work along the last axis."""
    draw = random.Random(seed)
    shapes = [shape] * 3 + [shape[-1:], (shape[0],) + (1,) * (len(shape) - 1), (1,)]
    inputs = [
        (draw.choice(shapes), draw.choice(FLOATS if draw.random() < 0.7 else DTYPES))
        for _ in range(draw.randint(2, 5))
    ]
    inputs[0] = (shape, inputs[0][1])
    steps: list[Callable[[list[Any]], Any]] = []

    def value() -> int:
        """The index of a value that is there, more often a recent one."""
        there = len(inputs) + len(steps)
        recent = draw.random() < 0.7
        return draw.randrange(max(0, there - 6) if recent else 0, there)

    def unary() -> Callable[[list[Any]], Any]:
        name, x = draw.choice(UNARY), value()
        return lambda v: getattr(tenon, name)(v[x])

    def binary() -> Callable[[list[Any]], Any]:
        name, x, y = draw.choice(BINARY), value(), value()
        number = None if draw.random() < 0.75 else draw.choice([2, 0.5, -1.5, 3, True])
        return lambda v: getattr(tenon, name)(v[x], v[y] if number is None else number)

    def where() -> Callable[[list[Any]], Any]:
        mask, x, y = value(), value(), value()
        return lambda v: tenon.where(v[mask].to(tenon.bool), v[x], v[y])

    def conversion() -> Callable[[list[Any]], Any]:
        dtype, x = getattr(tenon, draw.choice(DTYPES)), value()
        return lambda v: v[x].to(dtype)

    def clip() -> Callable[[list[Any]], Any]:
        x, low, high = value(), draw.uniform(-2, 0), draw.uniform(0, 2)
        return lambda v: v[x].clip(low, high)

    def reduction() -> Callable[[list[Any]], Any]:
        name, x, keepdim = draw.choice(REDUCTIONS), value(), draw.random() < 0.7
        repeats = draw.random() < 0.5

        def step(v: list[Any]) -> Any:
            column = getattr(tenon, name)(v[x], -1, keepdim=keepdim)
            if keepdim:
                return column
            column = column.unsqueeze(-1)
            return column.expand(v[x].shape) if repeats else column

        return step

    def rowwise() -> Callable[[list[Any]], Any]:
        name, x = draw.choice(ROWWISE), value()
        return lambda v: getattr(tenon, name)(v[x])

    kinds, weights = [unary, binary, where, conversion, clip], [35, 40, 10, 10, 5]
    if rows:
        kinds, weights = [*kinds, reduction, rowwise], [*weights, 30, 10]
    for _ in range(draw.randint(3, 25)):
        kind = draw.choices(kinds, weights)[0]
        steps.append(kind())
    last = len(inputs) + len(steps) - 1
    results = {draw.randrange(len(inputs), last + 1) for _ in range(draw.randint(1, 3))} | {last}

    def function(*arguments: tenon.Tensor) -> tuple[tenon.Tensor, ...]:
        values = list(arguments)
        for step in steps:
            try:
                values.append(step(values))
            except (TypeError, ValueError, RuntimeError):
                values.append(values[-1])
        return tuple(values[i] for i in sorted(results))

    rng = np.random.default_rng(seed)
    return function, tuple(_argument(rng, *each, device) for each in inputs)


def _argument(rng: Any, shape: tuple[int, ...], dtype: str, device: str) -> tenon.Tensor:
    numbers = rng.standard_normal(shape) * 3
    if dtype == "uint8":
        numbers = np.abs(numbers)
    if dtype in FLOATS and rng.random() < 0.2:
        numbers.flat[::7] = np.nan
    return tenon.tensor(numbers.astype("float32")).to(getattr(tenon, dtype)).to(device)


def assert_same_bits(expected: tuple[tenon.Tensor, ...], got: tuple[tenon.Tensor, ...]) -> None:
    for a, b in zip(expected, got, strict=True):
        assert a.dtype == b.dtype and tuple(a.shape) == tuple(b.shape)
        wide = tenon.float32 if a.dtype in (tenon.bfloat16, tenon.float16) else a.dtype
        np.testing.assert_array_equal(*(t.to("cpu").to(wide).numpy() for t in (a, b)))
