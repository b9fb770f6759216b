# SPDX-License-Identifier: Apache-2.0
"""8-bit weights and activations: observing, training with rounded numbers, and converting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import tenon
from tenon import Tensor, nn

from .layers import Int8Conv, Int8Linear, scales_of
from .observers import Observer, make_observer
from .program_layers import as_module
from .replacement import call_with, copy_of, find_layers, replace_layers

M = TypeVar("M", bound=nn.Module)

KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Int8(NamedTuple):
    """How layers become 8-bit: weights with a scale for each output, what they are called on with one
    scale and zero point, of which `activations` decides: 'minmax', 'moving_average', 'percentile', 'mse',
    or a function that makes an Observer. `keep` has patterns of names of layers that stay float."""

    activations: str | Callable[[], Observer] = "minmax"
    keep: Sequence[str] = ()


_OBSERVED, _TRAINED = Int8(), Int8("moving_average")


class Observed(nn.Module):
    """A layer, and an observer of what it is called on."""

    def __init__(self, layer: Any, observer: Observer) -> None:
        self.layer, self.observer = layer, observer

    def forward(self, x: Tensor) -> Tensor:
        self.observer.see(x.detach())
        return self.layer(x)


class FakeQuantized(nn.Module):
    """A layer in training that rounds as the converted one will; gradients pass straight through.

    In training mode its observer sees each batch; in eval mode ranges stay.
    """

    def __init__(self, layer: Any, observer: Observer) -> None:
        self.layer, self.observer = layer, observer

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.observer.see(x.detach())
        steps = self.observer.steps()
        scale = tenon.tensor(steps.scale, dtype=x.dtype, device=x.device)
        zero = tenon.tensor(steps.zero_point, dtype=x.dtype, device=x.device)
        x = tenon.fake_quantize(x, scale, zero, quant_min=0, quant_max=255)
        weight = tenon.fake_quantize(
            self.layer.weight, scales_of(self.layer.weight), quant_min=-127, quant_max=127, axis=0
        )
        return call_with(self.layer, x, weight, self.layer.bias)


def observe(module: M, recipe: Int8 = _OBSERVED) -> M:
    """A copy of `module` that computes as before and watches what its Linear and Conv layers are called
    on. Run it on some hundred samples, then `convert` it."""
    return _with_observers("observe", module, recipe, Observed)


def prepare_training(module: M, recipe: Int8 = _TRAINED) -> M:
    """A copy of `module` for quantisation-aware training: its Linear and Conv layers round weights and
    what they are called on. Train it as usual, then `convert` it."""
    return _with_observers("prepare_training", module, recipe, FakeQuantized)


def convert(module: M) -> M:
    """A copy of what `observe` or `prepare_training` made, with 8-bit layers."""
    result = copy_of(as_module("convert", module))
    made: dict[str, nn.Module] = {}
    for name, place in result.named_modules():
        if isinstance(place, (Observed, FakeQuantized)):
            kind = Int8Linear if isinstance(place.layer, nn.Linear) else Int8Conv
            observer = type(place.observer).__name__
            made[name] = kind(place.layer, place.observer.steps(), observer)
    if not made:
        raise ValueError(
            f"convert: expected a module that observe() or prepare_training() made, got "
            f"{type(module).__name__} without observed layers"
        )
    return replace_layers(result, made)


def _with_observers(function: str, module: M, recipe: Int8, wrapper: type) -> M:
    result = copy_of(as_module(function, module))
    made: dict[str, nn.Module] = {
        name: wrapper(layer, make_observer(recipe.activations, name))
        for name, layer in find_layers(result, KINDS, recipe.keep)
    }
    if not made:
        raise ValueError(f"{function}: {type(module).__name__} has no Linear or Conv layer")
    return replace_layers(result, made)
