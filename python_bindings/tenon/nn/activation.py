# SPDX-License-Identifier: Apache-2.0
"""Activation functions as modules, for use in Sequential."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor
from tenon._spellings import KEYWORDS

from . import functional as F
from .flags import is_flag
from .module import Module
from .parameter import Parameter


class Activation(Module):
    """A module that calls one function with fixed settings. Subclasses name both.

    Where PyTorch's layer has a switch `inplace`, so has this one, behind the settings. It saves
    memory in PyTorch and changes no result; here results are always new.
    """

    function: Callable[..., Tensor]
    settings: dict[str, Any] = {}  # name and default of each, in order
    has_inplace = False

    def __init__(self, *values: Any, **named: Any) -> None:
        name = type(self).__name__
        known = [*self.settings, "inplace"] if self.has_inplace else [*self.settings]
        if len(values) > len(known):
            raise TypeError(f"{name}: expected settings {known}, got {list(values)} and {named}")
        given = dict(zip(known, values))
        for key, value in named.items():
            own = next((each for each in (key, *KEYWORDS.get(key, ())) if each in known), key)
            if own not in known or own in given:
                what = "twice" if own in given else f"and {named}"
                raise TypeError(f"{name}: expected settings {known}, got {key} {what}")
            given[own] = value
        if not is_flag(given.pop("inplace", False)):
            raise TypeError(
                f"{name}: expected inplace to be True or False, got {[*values, *named.values()]}"
            )
        self.settings = {**self.settings, **given}

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, **self.settings)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


def _activation(
    name: str, function: Callable[..., Tensor], *, has_inplace: bool = False, **settings: Any
) -> type[Activation]:
    parameters = [
        inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        for each, value in (settings | ({"inplace": False} if has_inplace else {})).items()
    ]
    body = {
        "function": staticmethod(function),
        "settings": settings,
        "has_inplace": has_inplace,
        "__module__": __name__,
        "__doc__": f"Applies nn.functional.{function.__name__}.",
        "__signature__": inspect.Signature(parameters),
    }
    return type(name, (Activation,), body)


def _gelu(x: Tensor, approximate: bool | str = False) -> Tensor:
    if approximate not in (False, True, "none", "tanh"):
        raise ValueError(f"GELU: expected approximate 'none' or 'tanh', got {approximate!r}")
    return tenon.gelu(x, approximate is True or approximate == "tanh")


def _softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Behind 20 the line is what rounding leaves of softplus in float32."""
    result = F.softplus(x, beta)
    return result if threshold >= 20 else tenon.where(x * beta > threshold, x, result)


def _along(name: str, function: Callable[..., Tensor]) -> type[Activation]:
    """A layer along one axis. Where none is chosen, PyTorch takes the first of three axes, the second
    of four and the last of two: only the last choice is what is meant, as a rule."""

    def along(x: Tensor, axis: int | None = None) -> Tensor:
        if axis is None and x.ndim > 2:
            raise ValueError(
                f"{name}: expected dim, the axis of the classes, for an input of {x.ndim} axes; "
                f"{name}(-1) takes the last"
            )
        return function(x, -1 if axis is None else axis)

    along.__name__ = function.__name__
    return _activation(name, along, axis=None)


_gelu.__name__ = "gelu"
_softplus.__name__ = "softplus"

ReLU = _activation("ReLU", F.relu, has_inplace=True)
ReLU6 = _activation("ReLU6", F.relu6, has_inplace=True)
LeakyReLU = _activation("LeakyReLU", F.leaky_relu, has_inplace=True, negative_slope=0.01)
ELU = _activation("ELU", F.elu, has_inplace=True, alpha=1.0)
SELU = _activation("SELU", F.selu, has_inplace=True)
CELU = _activation("CELU", F.celu, has_inplace=True, alpha=1.0)
GELU = _activation("GELU", _gelu, approximate=False)
SiLU = _activation("SiLU", F.silu, has_inplace=True)
Mish = _activation("Mish", F.mish, has_inplace=True)
Sigmoid = _activation("Sigmoid", F.sigmoid)
LogSigmoid = _activation("LogSigmoid", F.log_sigmoid)
Tanh = _activation("Tanh", F.tanh)
Tanhshrink = _activation("Tanhshrink", F.tanhshrink)
Softplus = _activation("Softplus", _softplus, beta=1.0, threshold=20.0)
Softsign = _activation("Softsign", F.softsign)
Softshrink = _activation("Softshrink", F.softshrink, threshold=0.5)
Hardshrink = _activation("Hardshrink", F.hardshrink, threshold=0.5)
Hardtanh = _activation("Hardtanh", F.hardtanh, has_inplace=True, min=-1.0, max=1.0)
Hardsigmoid = _activation("Hardsigmoid", F.hardsigmoid, has_inplace=True)
Hardswish = _activation("Hardswish", F.hardswish, has_inplace=True)
Threshold = _activation("Threshold", F.threshold, has_inplace=True, threshold=1.0, value=0.0)
Softmax = _along("Softmax", F.softmax)
LogSoftmax = _along("LogSoftmax", F.log_softmax)
Softmin = _along("Softmin", F.softmin)
GLU = _activation("GLU", F.glu, axis=-1)
Maxout = _activation("Maxout", F.maxout, groups=2, axis=1)


class Softmax2d(Module):
    """Softmax over the channels of every pixel of [N, C, H, W] or [C, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 axes, got shape {tuple(x.shape)}")
        return F.softmax(x, -3)


class RReLU(Module):
    """Leaky ReLU; in training every element has a random slope between `lower` and `upper`."""

    def __init__(
        self,
        lower: float = 1.0 / 8,
        upper: float = 1.0 / 3,
        inplace: bool = False,
        *,
        generator: Any = None,
    ) -> None:
        if not lower <= upper:
            raise ValueError(f"RReLU: expected lower <= upper, got {lower} and {upper}")
        self.lower, self.upper, self.generator = lower, upper, generator

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class PReLU(Module):
    """Leaky ReLU whose slope is learnt: one for all, or one for each channel (axis 1)."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter(
            tenon.full([num_parameters], init, device=device, dtype=dtype or tenon.float32)
        )

    def forward(self, x: Tensor) -> Tensor:
        shape = [-1] + [1] * (x.ndim - 2) if self.num_parameters > 1 else [1]
        return F.prelu(x, self.weight.reshape(shape))

    def extra_repr(self) -> str:
        return f"{self.num_parameters}"
