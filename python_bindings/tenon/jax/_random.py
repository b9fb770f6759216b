# SPDX-License-Identifier: Apache-2.0
"""Random numbers of JAX: threefry with 20 rounds (Salmon et al.: Parallel Random Numbers: As Easy as 1, 2, 3, 2011), the same bits."""

from __future__ import annotations

import math
from typing import Any, Final

import tenon
from tenon._core import Tensor
from tenon.jit.foreign_calls import Refused

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA


def _rotated(walk: Any, x: Tensor, bits: int) -> Tensor:
    left = walk.call("bitwise_left_shift", x, bits)
    return walk.call("bitwise_or", left, walk.call("bitwise_right_shift", x, 32 - bits))


def _hashed(walk: Any, keys: Any, x0: Any, x1: Any) -> tuple[Tensor, Tensor]:
    """Two words for two words."""
    call = walk.call
    first, second = keys
    parity = walk.constant(tenon.tensor(_PARITY, dtype="uint32"))
    third = call("bitwise_xor", call("bitwise_xor", first, second), parity)
    words = (first, second, third)
    x0, x1 = call("add", x0, first), call("add", x1, second)
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x0 = call("add", x0, x1)
            x1 = call("bitwise_xor", _rotated(walk, x1, bits), x0)
        x0 = call("add", x0, words[(group + 1) % 3])
        more = call("add", words[(group + 2) % 3], walk.constant(_number(group + 1)))
        x1 = call("add", x1, more)
    return x0, x1


def _number(value: int) -> Tensor:
    return tenon.tensor(value, dtype="uint32")


def threefry2x32(walk: Any, equation: Any, *words: Any) -> Any:
    k0, k1, x0, x1 = (walk.tensor(each, "uint32") for each in words)
    return list(_hashed(walk, (k0, k1), x0, x1))


def _counted(walk: Any, equation: Any, key: Tensor, shape: list[int]) -> tuple[Tensor, Tensor]:
    """Two words for each place of `shape`, by its number."""
    if not walk.jax.config.jax_threefry_partitionable:
        raise Refused("with jax_threefry_partitionable=False")
    outer = list(key.shape)[:-1]
    inner = [1] * len(shape)
    words = [
        walk.call("reshape", walk.call("select", key, key.ndim - 1, part), [*outer, *inner])
        for part in (0, 1)
    ]
    count = math.prod(shape)
    if count >= 2**31:
        raise Refused(f"for {count} numbers at once")
    numbers = walk.call("cast", walk.call("arange", 0, count, 1, dtype=tenon.int64), tenon.uint32)
    low = walk.call("reshape", numbers, shape)
    high = walk.call("full", shape, 0, dtype=tenon.uint32)
    return _hashed(walk, words, high, low)


def random_bits(walk: Any, equation: Any, key: Tensor) -> Any:
    if equation.params["bit_width"] != 32:
        raise Refused(f"of {equation.params['bit_width']} bits")
    return walk.call("bitwise_xor", *_counted(walk, equation, key, list(equation.params["shape"])))


def random_split(walk: Any, equation: Any, key: Tensor) -> Any:
    words = _counted(walk, equation, key, list(equation.params["shape"]))
    return walk.call("stack", list(words), -1)


def random_seed(walk: Any, equation: Any, seed: Any) -> Any:
    """A seed is the second word; the upper half of one with 64 bits is the first."""
    dtype = str(equation.invars[0].aval.dtype)
    if dtype not in ("int32", "uint32", "int64"):
        raise Refused(f"of {dtype}")
    seed = walk.tensor(seed, dtype)
    low = walk.call("cast", seed, tenon.uint32)
    high = walk.call("zeros_like", low)
    if dtype == "int64":
        high = walk.call("cast", walk.call("bitwise_right_shift", seed, 32), tenon.uint32)
    return walk.call("stack", [high, low], -1)


def random_fold_in(walk: Any, equation: Any, key: Tensor, data: Any) -> Any:
    data = walk.call("cast", walk.tensor(data, "uint32"), tenon.uint32)
    words = [walk.call("select", key, key.ndim - 1, part) for part in (0, 1)]
    found = _hashed(walk, words, walk.call("zeros_like", data), data)
    return walk.call("stack", list(found), -1)


def same(walk: Any, equation: Any, key: Tensor) -> Any:
    return key


TABLE: Final[dict[str, Any]] = {
    "threefry2x32": threefry2x32,
    "random_bits": random_bits,
    "random_split": random_split,
    "random_seed": random_seed,
    "random_fold_in": random_fold_in,
    "random_wrap": same,
    "random_unwrap": same,
}
