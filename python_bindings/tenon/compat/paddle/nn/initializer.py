# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.initializer: rules for the first values of parameters, as objects that fill a tensor.

Weights are as Paddle lays them out, [in, out] of linear layers and [out, in, ...] of convolutions. All are callables, so
that they may stand wherever a layer takes `weight_attr` or `bias_attr`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tenon
from tenon._core import Tensor

_init = tenon.nn.init

__all__ = """Assign Bilinear Constant Dirac Initializer KaimingNormal KaimingUniform Normal Orthogonal TruncatedNormal
Uniform XavierNormal XavierUniform calculate_gain set_global_initializer""".split()


class Initializer:
    """Base class: subclasses fill a tensor in place in fill()."""

    def __call__(self, param: Tensor, block: Any = None) -> Tensor:
        if block is not None:
            raise NotImplementedError(
                "Initializer: expected block=None, got a block of a static program"
            )
        with tenon.no_grad():
            self.fill(param)
        return param

    def fill(self, param: Tensor) -> Any:
        """Write the first values."""
        raise NotImplementedError(f"{type(self).__name__} must define fill()")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


def _fans(shape: Any, fan_in: float | None = None, fan_out: float | None = None) -> Any:
    """Inputs of an output and outputs of an input, of a weight in Paddle's layout."""
    sizes = list(shape)
    if len(sizes) < 2:
        own = (sizes[0], sizes[0]) if sizes else (1, 1)
    elif len(sizes) == 2:
        own = (sizes[0], sizes[1])
    else:
        window = math.prod(sizes[2:])
        own = (sizes[1] * window, sizes[0] * window)
    return (own[0] if fan_in is None else fan_in, own[1] if fan_out is None else fan_out)


class Constant(Initializer):
    """One value."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def fill(self, param: Tensor) -> Any:
        return param.fill_(self.value)


class Normal(Initializer):
    """Normal numbers."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.mean, self.std = mean, std

    def fill(self, param: Tensor) -> Any:
        return _init.normal_(param, self.mean, self.std)


class TruncatedNormal(Initializer):
    """Normal numbers, of those between `a` and `b`."""

    def __init__(
        self,
        mean: float = 0.0,
        std: float = 1.0,
        a: float = -2.0,
        b: float = 2.0,
        name: str | None = None,
    ) -> None:
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def fill(self, param: Tensor) -> Any:
        return _init.trunc_normal_(param, self.mean, self.std, self.a, self.b)


class Uniform(Initializer):
    """Uniform numbers in [low, high)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        self.low, self.high = low, high

    def fill(self, param: Tensor) -> Any:
        return _init.uniform_(param, self.low, self.high)


class _Xavier(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        fan_out: float | None = None,
        gain: float = 1.0,
        name: str | None = None,
    ) -> None:
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def _deviation(self, param: Tensor) -> float:
        return self.gain * math.sqrt(2.0 / sum(_fans(param.shape, self.fan_in, self.fan_out)))


class XavierNormal(_Xavier):
    """Normal numbers whose variance is 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""

    def fill(self, param: Tensor) -> Any:
        return _init.normal_(param, 0.0, self._deviation(param))


class XavierUniform(_Xavier):
    """Uniform numbers whose variance is 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""

    def fill(self, param: Tensor) -> Any:
        bound = math.sqrt(3.0) * self._deviation(param)
        return _init.uniform_(param, -bound, bound)


class _Kaiming(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: str = "fan_in",
    ) -> None:
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(
                f"{type(self).__name__}: expected mode 'fan_in' or 'fan_out', got {mode!r}"
            )
        self.fan_in, self.mode = fan_in, mode
        self.negative_slope, self.nonlinearity = negative_slope, nonlinearity

    def _deviation(self, param: Tensor) -> float:
        fan = _fans(param.shape, self.fan_in)[self.mode == "fan_out"]
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)


class KaimingNormal(_Kaiming):
    """Normal numbers that keep the variance behind rectifiers (He et al., 2015)."""

    def fill(self, param: Tensor) -> Any:
        return _init.normal_(param, 0.0, self._deviation(param))


class KaimingUniform(_Kaiming):
    """Uniform numbers that keep the variance behind rectifiers (He et al., 2015)."""

    def fill(self, param: Tensor) -> Any:
        bound = math.sqrt(3.0) * self._deviation(param)
        return _init.uniform_(param, -bound, bound)


class Assign(Initializer):
    """These values: a tensor, an array or a list."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        self.value = value

    def fill(self, param: Tensor) -> Any:
        given = tenon.asarray(self.value)
        if tuple(given.shape) != tuple(param.shape):
            raise ValueError(
                f"Assign: expected values of shape {tuple(param.shape)}, got {tuple(given.shape)}"
            )
        return param.copy_(given)


class Orthogonal(Initializer):
    """Orthonormal rows or columns, times `gain` (Saxe et al., 2013)."""

    def __init__(self, gain: float = 1.0, name: str | None = None) -> None:
        self.gain = gain

    def fill(self, param: Tensor) -> Any:
        return _init.orthogonal_(param, self.gain)


class Dirac(Initializer):
    """A convolution that passes its channels on."""

    def __init__(self, groups: int = 1, name: str | None = None) -> None:
        self.groups = groups

    def fill(self, param: Tensor) -> Any:
        return _init.dirac_(param, self.groups)


class Bilinear(Initializer):
    """A transposed convolution [channels, channels, k, k] that enlarges images by linear interpolation."""

    def fill(self, param: Tensor) -> Any:
        if param.ndim != 4 or param.shape[2] != param.shape[3]:
            raise ValueError(
                f"Bilinear: expected a weight of square windows [_, _, k, k], got shape {tuple(param.shape)}"
            )
        size = param.shape[3]
        factor = math.ceil(size / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        line = [1 - abs(i / factor - center) for i in range(size)]
        window = [[row * column for column in line] for row in line]
        return param.copy_(tenon.tensor(window).expand(list(param.shape)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights should be scaled to make up for a nonlinearity."""
    if nonlinearity in ("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"):
        return 1.0
    return _init.calculate_gain(nonlinearity, param)


# What set_global_initializer() has said: for weights, and for biases.
_global: list[Callable[[Tensor], Any] | None] = [None, None]


def set_global_initializer(
    weight_init: Callable[[Tensor], Any] | None,
    bias_init: Callable[[Tensor], Any] | None = None,
) -> None:
    """Layers of this namespace that are made from now on use these where they have no `weight_attr` or `bias_attr` with
    a rule; None gives the usual ones back."""
    for each in (weight_init, bias_init):
        if each is not None and not callable(each):
            raise TypeError(
                f"set_global_initializer(): expected initialisers or None, got {each!r}"
            )
    _global[:] = [weight_init, bias_init]


def of_layers(is_bias: bool) -> Callable[[Tensor], Any] | None:
    """The rule that set_global_initializer() has set."""
    return _global[is_bias]
