# SPDX-License-Identifier: Apache-2.0
"""einops on tensors: importing this module is enough.

    import tenon.compat.einops
    from einops import rearrange

einops finds subclasses of its back end by itself; its functions and layers are its own. `einops.layers` has no module for Tenon, so
`Rearrange`, `Reduce` and `EinMix` are here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from einops import _backends
from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

import tenon
from tenon import nn
from tenon._core import Tensor

__all__ = ["Backend", "EinMix", "Rearrange", "Reduce"]


class Backend(_backends.AbstractBackend):
    framework_name = "tenon"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        return tenon.from_numpy(x)

    def to_numpy(self, x: Tensor) -> Any:
        return x.detach().to("cpu").numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return tenon.arange(start, stop, dtype=tenon.int64)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Any:
        return getattr(tenon, operation)(x, axis=list(axes))

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return tenon.permute(x, list(axes))

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        return tenon.stack(list(tensors))

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return tenon.tile(x, list(repeats))

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return tenon.concat(list(tensors), axis)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return tenon.unsqueeze(x, new_position)

    def is_float_type(self, x: Tensor) -> bool:
        return bool(x.dtype.is_floating_point)

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return tenon.einsum(pattern, list(x))

    def layers(self) -> Any:
        return sys.modules[__name__]


class Rearrange(RearrangeMixin, nn.Module):
    def forward(self, input: Tensor) -> Any:
        return self._apply_recipe(input)


class Reduce(ReduceMixin, nn.Module):
    def forward(self, input: Tensor) -> Any:
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, nn.Module):
    def _create_parameters(
        self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float
    ) -> None:
        self.weight = nn.Parameter(tenon.uniform(list(weight_shape), -weight_bound, weight_bound))
        self.bias: Any = None
        if bias_shape is not None:
            self.bias = nn.Parameter(tenon.uniform(list(bias_shape), -bias_bound, bias_bound))

    def _create_rearrange_layers(
        self,
        pre_reshape_pattern: str | None,
        pre_reshape_lengths: dict[str, int] | None,
        post_reshape_pattern: str | None,
        post_reshape_lengths: dict[str, int] | None,
    ) -> None:
        self.pre_rearrange = self.post_rearrange = None
        if pre_reshape_pattern is not None:
            self.pre_rearrange = Rearrange(pre_reshape_pattern, **(pre_reshape_lengths or {}))
        if post_reshape_pattern is not None:
            self.post_rearrange = Rearrange(post_reshape_pattern, **(post_reshape_lengths or {}))

    def forward(self, input: Tensor) -> Any:
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = tenon.einsum(self.einsum_pattern, [input, self.weight])
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)
