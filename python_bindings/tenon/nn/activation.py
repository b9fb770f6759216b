# SPDX-License-Identifier: Apache-2.0
"""Activation functions as modules, for use in Sequential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from .module import Module
from .parameter import Parameter

# PyTorch's names of settings that Tenon's operators name otherwise.
_OTHER_NAMES = {"dim": "axis", "min_val": "min", "max_val": "max", "lambd": "threshold"}


class Activation(Module):
    """A module that calls one function with fixed settings. Subclasses name both."""

    function: Callable[..., Tensor]
    settings: dict[str, Any] = {}  # name and default of each, in order

    def __init__(self, *values: Any, inplace: bool = False, **named: Any) -> None:
        # `inplace` saves memory in PyTorch and changes no result; here results are always new.
        named = {
            _OTHER_NAMES.get(name, name) if name not in self.settings else name: value
            for name, value in named.items()
        }
        if len(values) > len(self.settings) or not named.keys() <= self.settings.keys():
            raise TypeError(
                f"{type(self).__name__}: expected settings {list(self.settings)}, got "
                f"{list(values)} and {named}"
            )
        self.settings = {**self.settings, **dict(zip(self.settings, values)), **named}

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, **self.settings)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


def _activation(name: str, function: Callable[..., Tensor], **settings: Any) -> type[Activation]:
    body = {
        "function": staticmethod(function),
        "settings": settings,
        "__module__": __name__,
        "__doc__": f"Applies nn.functional.{function.__name__}.",
    }
    return type(name, (Activation,), body)


def _gelu(x: Tensor, approximate: bool | str = False) -> Tensor:
    return tenon.gelu(x, approximate if isinstance(approximate, bool) else approximate == "tanh")


_gelu.__name__ = "gelu"

ReLU = _activation("ReLU", F.relu)
ReLU6 = _activation("ReLU6", F.relu6)
LeakyReLU = _activation("LeakyReLU", F.leaky_relu, negative_slope=0.01)
ELU = _activation("ELU", F.elu, alpha=1.0)
SELU = _activation("SELU", F.selu)
CELU = _activation("CELU", F.celu, alpha=1.0)
GELU = _activation("GELU", _gelu, approximate=False)
SiLU = _activation("SiLU", F.silu)
Mish = _activation("Mish", F.mish)
Sigmoid = _activation("Sigmoid", F.sigmoid)
LogSigmoid = _activation("LogSigmoid", F.log_sigmoid)
Tanh = _activation("Tanh", F.tanh)
Tanhshrink = _activation("Tanhshrink", F.tanhshrink)
Softplus = _activation("Softplus", F.softplus, beta=1.0)
Softsign = _activation("Softsign", F.softsign)
Softshrink = _activation("Softshrink", F.softshrink, threshold=0.5)
Hardshrink = _activation("Hardshrink", F.hardshrink, threshold=0.5)
Hardtanh = _activation("Hardtanh", F.hardtanh, min=-1.0, max=1.0)
Hardsigmoid = _activation("Hardsigmoid", F.hardsigmoid)
Hardswish = _activation("Hardswish", F.hardswish)
Threshold = _activation("Threshold", F.threshold, threshold=1.0, value=0.0)
Softmax = _activation("Softmax", F.softmax, axis=-1)
LogSoftmax = _activation("LogSoftmax", F.log_softmax, axis=-1)
Softmin = _activation("Softmin", F.softmin, axis=-1)
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
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        if not lower <= upper:
            raise ValueError(f"RReLU: expected lower <= upper, got {lower} and {upper}")
        self.lower, self.upper = lower, upper

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class PReLU(Module):
    """Leaky ReLU whose slope is learnt: one for all, or one for each channel (axis 1)."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, device: Any = None, dtype: Any = None
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
