# SPDX-License-Identifier: Apache-2.0
"""PyTorch's forms of convolutions, pools, dropouts and views that programs call by their inner names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch import _layers
from tenon.nn import functional as F

__all__ = """conv_tbc convolution max_pool1d_with_indices native_dropout slice_copy view_as_complex_copy view_as_real_copy""".split()


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution of sequences [T, N, C] with `weight` [width, C, channels], `pad` zeros at both ends."""
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise ValueError(
            f"conv_tbc(): expected input [T, N, C], weight [width, C, channels] and bias [channels], got shapes {tuple(input.shape)}, "
            f"{tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    out = F.conv1d(input.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, padding=pad)
    return out.permute([2, 0, 1])


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """A convolution, or a transposed one, of one to three spatial dimensions."""
    spatial = weight.ndim - 2
    if not 1 <= spatial <= 3:
        raise ValueError(
            f"convolution(): expected a weight of one to three spatial dimensions, got shape {tuple(weight.shape)}"
        )
    lists = [
        list(each) * (spatial if len(each) == 1 else 1)
        for each in (stride, padding, dilation, output_padding)
    ]
    if not transposed:
        if any(output_padding):
            raise ValueError(
                f"convolution(): expected output_padding of zeros beside transposed=False, got {list(output_padding)}"
            )
        function = getattr(_layers, f"conv{spatial}d")
        return function(input, weight, bias, lists[0], lists[1], lists[2], groups)
    function = getattr(_layers, f"conv_transpose{spatial}d")
    return function(input, weight, bias, lists[0], lists[1], lists[3], groups, lists[2])


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Maxima of windows, and where they are."""
    stride = None if isinstance(stride, (list, tuple)) and not stride else stride
    return F.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Elements that are left, scaled by 1 / (1 - p), and which these are; without `train` all of them."""
    if train is False or p == 0:
        return input.clone(), tenon.ones_like(input, dtype=tenon.bool)
    if not 0 <= p <= 1:
        raise ValueError(f"native_dropout(): expected p from 0 to 1, got {p}")
    kept = tenon.rand(list(input.shape), device=input.device) >= p
    scale = 1 / (1 - p) if p < 1 else 0.0
    return tenon.where(kept, input * scale, tenon.zeros_like(input)), kept


def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Elements `start` to `end` along an axis, every `step`-th of them, as a copy."""
    if step < 1:
        raise ValueError(f"slice_copy(): expected a step of at least 1, got {step}")
    key = [slice(None)] * input.ndim
    key[dim] = slice(start, end, step)
    return input[tuple(key)].clone()


def view_as_complex_copy(input: Tensor) -> Tensor:
    """Pairs of real numbers along the last axis as complex ones, copied."""
    return tenon.as_complex(input).clone()


def view_as_real_copy(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along a new last axis, copied."""
    return tenon.as_real(input).clone()
