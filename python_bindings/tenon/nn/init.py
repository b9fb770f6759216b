# SPDX-License-Identifier: Apache-2.0
"""Initial values, written in place. Every function returns the tensor it was given.

Those that draw take a `generator`, a tenon.random.Generator on the tensor's device, whose numbers
they use; without one the numbers are those of the device's stream.
"""

from __future__ import annotations

import math

import tenon
from tenon import Tensor
from tenon._tensor.generators import Generator, stream_of
from tenon._tensor.tensors_expected import expect_tensors as _expect_tensors


def constant_(tensor: Tensor, val: float) -> Tensor:
    with tenon.no_grad():
        return tenon.full(tensor.shape, val, dtype=tensor.dtype, device=tensor.device, out=tensor)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    with tenon.no_grad(), stream_of(generator, tensor.device, "init"):
        return tenon.uniform(
            tensor.shape, a, b, dtype=tensor.dtype, device=tensor.device, out=tensor
        )


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    with tenon.no_grad(), stream_of(generator, tensor.device, "init"):
        return tenon.normal(
            tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device, out=tensor
        )


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Keeps the variance of both activations and gradients (Glorot and Bengio, 2010)."""
    fan_in, fan_out = fans(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    fan_in, fan_out = fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Keeps the variance of activations behind rectifiers whose slope below 0 is `a` (He et al., 2015)."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal values between `a` and `b`, by drawing those outside again."""
    if not a < b:
        raise ValueError(f"trunc_normal_: expected a < b, got {a} and {b}")
    inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    if inside < 1e-3:
        raise ValueError(
            f"trunc_normal_: expected [{a}, {b}] to hold a part of a normal distribution of mean "
            f"{mean} and standard deviation {std}, got a share of {inside:.1e}"
        )
    normal_(tensor, mean, std, generator)
    with tenon.no_grad(), stream_of(generator, tensor.device, "init"):
        while True:
            outside = (tensor < a) | (tensor > b)
            if not tenon.any(outside).item():
                return tensor
            again = tenon.normal(tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device)
            tensor.copy_(tenon.where(outside, again, tensor))


def eye_(tensor: Tensor) -> Tensor:
    """The identity, for a weight of two axes."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_: expected two axes, got shape {tuple(tensor.shape)}")
    with tenon.no_grad():
        return tensor.copy_(tenon.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights [out, in, ...] of a convolution that passes its channels on."""
    if not 3 <= tensor.ndim <= 5 or tensor.shape[0] % groups:
        raise ValueError(
            f"dirac_: expected a weight of 3 to 5 axes with outputs divisible by groups {groups}, "
            f"got shape {tuple(tensor.shape)}"
        )
    per_group = tensor.shape[0] // groups
    zeros_(tensor)
    with tenon.no_grad():
        middle = tuple(size // 2 for size in tensor.shape[2:])
        for group in range(groups):
            for i in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + i, i, *middle)] = 1.0
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal values, of which a share `sparsity` of every column is zero (Martens, 2010)."""
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: expected two axes, got shape {tuple(tensor.shape)}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with tenon.no_grad(), stream_of(generator, tensor.device, "init"):
        order = tenon.uniform([rows, columns], device=tensor.device)
        rank = tenon.argsort(tenon.argsort(order, 0), 0)
        keep = (rank >= zeros).cast(tensor.dtype)
        return tensor.copy_(tensor * keep)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Orthonormal rows or columns, the fewer of both, times `gain` (Saxe et al., 2013).

    Random rows are made orthogonal in float64, block by block: each block is made orthogonal to
    those before it (twice, which is enough; Giraud et al., 2005), then row by row inside.
    """
    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: expected two axes or more, got {tuple(tensor.shape)}")
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    count, length = min(rows, columns), max(rows, columns)
    with tenon.no_grad():
        # A stream of another device than the host's draws there.
        where = generator.device if isinstance(generator, Generator) else tenon.device("cpu")
        with stream_of(generator, where, "init"):
            random = tenon.normal([count, length], dtype=tenon.float64, device=where).cpu()
        done: list[Tensor] = []
        for start in range(0, count, 32):
            block = random[start : start + 32]
            if done:
                before = tenon.concat(done)
                for _ in range(2):
                    block = block - (block @ before.T) @ before
            done.append(_orthonormal_rows(block))
        result = tenon.concat(done) if done else random
        result = result if rows <= columns else result.T
        result = (result * gain).reshape([*tensor.shape])
        return tensor.copy_(result.to(tensor.dtype).to(tensor.device))


def _orthonormal_rows(block: Tensor) -> Tensor:
    rows: list[Tensor] = []
    for i in range(block.shape[0]):
        row = block[i]
        for _ in range(2):
            if rows:
                before = tenon.stack(rows)
                row = row - tenon.matmul(tenon.matmul(before, row), before)
        rows.append(row / tenon.norm(row))
    return tenon.stack(rows)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights should be scaled to make up for a nonlinearity.

    `param` is the slope of 'leaky_relu' below 0, by default 0.01.
    """
    negative_slope = 0.01 if param is None else param
    linear = (f"conv{transposed}{axes}d" for transposed in ("", "_transpose") for axes in (1, 2, 3))
    gains = {
        **dict.fromkeys(linear, 1.0),
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "selu": 0.75,
        "leaky_relu": math.sqrt(2.0 / (1.0 + negative_slope**2)),
    }
    if nonlinearity not in gains:
        raise ValueError(
            f"calculate_gain: expected one of {', '.join(gains)}, got {nonlinearity!r}"
        )
    return gains[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of a weight [out, in, ...] has, and how many outputs an input."""
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ValueError(f"expected a weight of two axes or more, got shape {shape}")
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def _kaiming_std(tensor: Tensor, negative_slope: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: expected mode 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, negative_slope) / math.sqrt(fan)


_expect_tensors(globals())
