# SPDX-License-Identifier: Apache-2.0
"""Blocks that several models are made of, and their initial weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import tenon
from tenon import Tensor, nn
from tenon.nn import init


class ConvNormActivation(nn.Sequential):
    """A convolution that keeps the size at stride 1, a norm, and an activation, unless they are
    None. Without a norm the convolution has a bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm: Callable[[int], nn.Module] | None = nn.BatchNorm2d,
        activation: Callable[[], nn.Module] | None = nn.ReLU,
        dilation: int = 1,
    ) -> None:
        convolution = nn.Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            (kernel_size - 1) // 2 * dilation,
            dilation,
            groups,
            bias=norm is None,
        )
        super().__init__(
            convolution,
            *([norm(out_channels)] if norm else []),
            *([activation()] if activation else []),
        )


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


class Stages(nn.Module):
    """The modules of a network up to the last of those named, and what the named ones give.

    `returned` says the name of each result. The modules keep their names, so that weights of the
    whole network load.
    """

    def __init__(self, network: nn.Module, returned: Mapping[str, str]) -> None:
        self.returned = dict(returned)
        left = set(returned)
        for name, module in network.named_children():
            if not left:
                break
            self.add_module(name, module)
            left.discard(name)
        if left:
            raise ValueError(
                f"Stages: expected names of modules of {type(network).__name__}, got {sorted(left)}"
            )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        results = {}
        for name, module in self.named_children():
            x = module(x)
            if name in self.returned:
                results[self.returned[name]] = x
        return results


F = TypeVar("F", bound=Callable[..., Any])


def untrained(build: F) -> F:
    """A function that builds a model also takes what torchvision's takes: `weights`, `pretrained`
    and, where there is a backbone, `weights_backbone`, if they ask for none, and `progress`, of a
    download that does not happen."""
    has_backbone = any(
        each in build.__module__ for each in ("models.detection", "models.segmentation")
    )

    @functools.wraps(build)
    def wrapper(
        *, weights: Any = None, pretrained: bool = False, progress: bool = True, **settings: Any
    ) -> Any:
        asked = [f"weights={weights!r}"] if weights is not None else []
        asked += [f"pretrained={pretrained!r}"] if pretrained else []
        backbone = settings.pop("weights_backbone", None) if has_backbone else None
        asked += [f"weights_backbone={backbone!r}"] if backbone is not None else []
        if asked:
            raise ValueError(
                f"{build.__name__}: expected weights None, as Tenon brings no trained ones, got "
                f"{asked[0]}; load those of torchvision by load_state_dict"
            )
        return build(**settings)

    return wrapper  # type: ignore[return-value]
