# SPDX-License-Identifier: Apache-2.0
"""Blocks that several models are made of, and their initial weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import tenon
from tenon import Tensor, nn
from tenon.nn import init


class ConvNormActivation(nn.Sequential):
    """A convolution that keeps the size at stride 1, a norm, and an activation unless it is
    None."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
        activation: Callable[[], nn.Module] | None = nn.ReLU,
    ) -> None:
        layers = [
            nn.Conv2d(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                (kernel_size - 1) // 2,
                groups=groups,
                bias=False,
            ),
            norm(out_channels),
        ]
        super().__init__(*layers, *([activation()] if activation else []))


class SqueezeExcitation(nn.Module):
    """Scales channels by what their means say (Hu et al., 2018)."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[[], nn.Module] = nn.ReLU,
        scale_activation: Callable[[], nn.Module] = nn.Sigmoid,
    ) -> None:
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, x: Tensor) -> Tensor:
        scale = self.activation(self.fc1(self.avgpool(x)))
        return x * self.scale_activation(self.fc2(scale))


class StochasticDepth(nn.Module):
    """In training, leaves out the whole sample with probability `p` and scales the others by 1 / (1
    - p) (Huang et al., 2016)."""

    def __init__(self, p: float) -> None:
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        keep = tenon.full([x.shape[0], *[1] * (x.ndim - 1)], 1 - self.p, dtype=x.dtype)
        return x * (tenon.bernoulli(keep.to(x.device)) / (1 - self.p))

    def extra_repr(self) -> str:
        return f"{self.p}"


def make_divisible(value: float, divisor: int = 8) -> int:
    """The nearest multiple of `divisor` that is not more than a tenth below `value`."""
    nearest = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * value else nearest


def zero_(*tensors: Tensor | None) -> None:
    """Sets the tensors that there are to 0."""
    for tensor in tensors:
        if tensor is not None:
            init.zeros_(tensor)


def init_convolutions(model: nn.Module, linear_std: float | None = 0.01) -> None:
    """He's normal weights for convolutions, normal ones for linear layers unless `linear_std` is
    None."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            zero_(module.bias)
        elif isinstance(module, nn.Linear) and linear_std is not None:
            init.normal_(module.weight, 0.0, linear_std)
            zero_(module.bias)


F = TypeVar("F", bound=Callable[..., Any])


def untrained(build: F) -> F:
    """A function that builds a model also takes what torchvision's takes: `weights` and `pretrained`,
    if they ask for none, and `progress`, of a download that does not happen."""

    @functools.wraps(build)
    def wrapper(
        *, weights: Any = None, pretrained: bool = False, progress: bool = True, **settings: Any
    ) -> Any:
        if weights is not None or pretrained:
            asked = f"weights={weights!r}" if weights is not None else f"pretrained={pretrained!r}"
            raise ValueError(
                f"{build.__name__}: expected weights None, as Tenon brings no trained ones, got "
                f"{asked}; load those of torchvision by load_state_dict"
            )
        return build(**settings)

    return wrapper  # type: ignore[return-value]
