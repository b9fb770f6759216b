# SPDX-License-Identifier: Apache-2.0
"""Activation functions that are composed of operators."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """`x` where it is above `threshold`, else `value`."""
    return tenon.threshold(x, threshold, value)


def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """Softmax of `-x`."""
    return tenon.softmax(-x, axis)


def rrelu(
    x: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Leaky ReLU with a random slope in training, and with the mean of both limits otherwise."""
    if not training:
        return tenon.leaky_relu(x, (lower + upper) / 2)
    slope = tenon.uniform_like(x, lower, upper, generator=generator)
    return tenon.where(x >= 0, x, x * slope)


def swiglu(x: Tensor, gate: Tensor | None = None) -> Tensor:
    """`silu(x) * gate`; without a gate the last axis of `x` is split into both (Shazeer, 2020)."""
    if gate is None:
        half = x.shape[-1] // 2
        x, gate = x[..., :half], x[..., half:]
    return tenon.silu(x) * gate


def maxout(x: Tensor, groups: int, axis: int = 1) -> Tensor:
    """The largest of every `groups` adjacent channels (Goodfellow et al., 2013)."""
    axis %= x.ndim
    if x.shape[axis] % groups:
        raise ValueError(
            f"maxout: expected channels divisible by groups {groups}, got {x.shape[axis]}"
        )
    shape = [*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :]]
    return tenon.max(x.reshape(shape), axis + 1)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    *,
    generator: Any = None,
) -> Tensor:
    """A random, differentiable sample of one of the classes along `axis` (Jang et al., 2017).

    With `hard` the result is one-hot, and its gradient is that of the soft sample.
    """
    # Of 32 bits at least: smaller floats have few numbers near 0 and 1, where the logarithms are
    # large.
    dtype = logits.dtype if logits.dtype == tenon.float64 else tenon.float32
    # Not 0, whose logarithm is infinite.
    uniform = tenon.uniform_like(logits, 1e-20, 1.0, dtype=dtype, generator=generator)
    noise = (-tenon.log(-tenon.log(uniform))).to(logits.dtype)
    soft = tenon.softmax((logits + noise) / tau, axis)
    if not hard:
        return soft
    chosen = tenon.argmax(soft, axis, keepdim=True)
    one_hot = tenon.scatter(
        tenon.zeros_like(soft), chosen, tenon.ones_like(chosen).cast(soft.dtype), axis
    )
    return one_hot - soft.detach() + soft
