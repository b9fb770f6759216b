# SPDX-License-Identifier: Apache-2.0
"""Blocks of networks as people write them: one text for every library, which may find the operator behind it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def namespace(library: Any) -> SimpleNamespace:
    """The functions that the blocks use, with one spelling."""
    word = "keepdims" if library.__name__.startswith("jax") else "keepdim"
    keep = {word: True}

    def of_rows(name: str) -> Callable:
        function = getattr(library, name)
        return lambda x: function(x, -1, **keep)

    is_torch = library.__name__ == "torch"
    return SimpleNamespace(
        exp=library.exp,
        sqrt=library.sqrt,
        tanh=library.tanh,
        max=of_rows("amax" if is_torch else "max"),
        sum=of_rows("sum"),
        mean=of_rows("mean"),
        swap=lambda x: x.swapaxes(-1, -2),
    )


def gelu(m: SimpleNamespace, x: Any) -> Any:
    return 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(m: SimpleNamespace, x: Any) -> Any:
    e = m.exp(x - m.max(x))
    return e / m.sum(e)


def layer_norm(m: SimpleNamespace, x: Any, weight: Any, bias: Any) -> Any:
    distance = x - m.mean(x)
    return distance / m.sqrt(m.mean(distance * distance) + 1e-5) * weight + bias


def attention(m: SimpleNamespace, query: Any, key: Any, value: Any) -> Any:
    return softmax(m, query @ m.swap(key) / 8.0) @ value


def cases() -> dict[str, tuple[Callable, list[np.ndarray]]]:
    """Name to function and arguments."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    heads = (4, 12, 256, 64)
    return {
        "gelu by hand, 10^6": (gelu, [normal(1000, 1000)]),
        "softmax by hand, 1000 x 1000": (softmax, [normal(1000, 1000)]),
        "layer norm by hand, 1024 x 1024": (
            layer_norm,
            [normal(1024, 1024), normal(1024), normal(1024)],
        ),
        "attention by hand, 4 x 12 x 256 x 64": (attention, [normal(*heads) for _ in range(3)]),
    }
