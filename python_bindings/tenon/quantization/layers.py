# SPDX-License-Identifier: Apache-2.0
"""Layers with weights of few bits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor, nn
from tenon.nn.parameter import Buffer

from .observers import Steps
from .replacement import call_with

ACTIVATIONS = ("float", "dynamic", "static")  # of Float8Linear


class BlockLinear(nn.Module):
    """linear with a weight in blocks of one of GGUF's formats: uint8 [out, bytes of a row].

    Rows of x whose length is no multiple of a block's are filled up with zeros. `activations` is that of
    `linear_blocks`.
    """

    def __init__(
        self,
        blocks: Tensor,
        format: str,
        in_features: int,
        bias: Tensor | None = None,
        activations: str = "float",
    ) -> None:
        if activations not in ("float", "int8"):
            raise ValueError(
                f"BlockLinear: expected activations 'float' or 'int8', got {activations!r}"
            )
        self.format, self.activations, self.in_features = format, activations, in_features
        self.out_features = blocks.shape[0]
        self.weight = Buffer(blocks)
        self.bias = None if bias is None else Buffer(bias.detach())
        self._missing = tenon.dequantize_blocks(blocks[:1], format).shape[-1] - in_features

    def forward(self, x: Tensor) -> Tensor:
        if self._missing:
            x = nn.functional.pad(x, [0, self._missing])
        return tenon.linear_blocks(
            x, self.weight, self.format, self.bias, activations=self.activations
        )

    def float_weight(self) -> Tensor:
        """The weight [out, in] that the blocks hold, in float32."""
        return tenon.dequantize_blocks(self.weight, self.format)[:, : self.in_features]

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, {self.format!r}, "
            f"bias={self.bias is not None}, activations={self.activations!r}"
        )


class BlockEmbedding(nn.Module):
    """Embedding of a table in blocks: uint8 [rows, bytes of a row]."""

    def __init__(self, blocks: Tensor, format: str, embedding_dim: int) -> None:
        self.format, self.embedding_dim = format, embedding_dim
        self.weight = Buffer(blocks)

    def forward(self, indices: Tensor) -> Tensor:
        rows = tenon.embedding_blocks(self.weight, indices, self.format)
        return rows[..., : self.embedding_dim]

    def float_weight(self) -> Tensor:
        return tenon.dequantize_blocks(self.weight, self.format)[:, : self.embedding_dim]

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.embedding_dim}, {self.format!r}"


class Float8Linear(nn.Module):
    """linear with a weight of float8 [out, in] beside its scales, of the shapes that `linear_fp8` takes.

    `activations`: "float" leaves what the layer is called on, "dynamic" rounds it to float8 with a scale
    for each row (with `block`, for each `block[1]` elements of a row), "static" with `x_scale`.
    """

    def __init__(
        self,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor | None = None,
        *,
        block: Sequence[int] | None = None,
        activations: str = "float",
        x_scale: Tensor | None = None,
    ) -> None:
        if activations not in ACTIVATIONS:
            raise ValueError(
                f"Float8Linear: expected activations 'float', 'dynamic' or 'static', got {activations!r}"
            )
        if (x_scale is not None) != (activations == "static"):
            raise ValueError(
                "Float8Linear: expected x_scale with activations 'static', and with these alone"
            )
        self.out_features, self.in_features = weight.shape
        self.block = None if block is None else list(block)
        self.activations = activations
        self.weight, self.weight_scale = Buffer(weight), Buffer(scale)
        self.x_scale = None if x_scale is None else Buffer(x_scale)
        self.bias = None if bias is None else Buffer(bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        return tenon.linear_fp8(
            x,
            self.weight,
            self.weight_scale,
            self.bias,
            self.x_scale,
            block=self.block,
            activations="float" if self.activations == "float" else "float8",
        )

    def float_weight(self) -> Tensor:
        """The weight [out, in] that the numbers and scales stand for, in float32."""
        scale = scales_of_elements(self.weight_scale, self.block, self.weight.shape)
        return self.weight.to(tenon.float32) * scale

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, {self.out_features}, {self.weight.dtype}, block={self.block}, "
            f"bias={self.bias is not None}, activations={self.activations!r}"
        )


def scales_of_elements(scale: Tensor, block: Sequence[int] | None, shape: Sequence[int]) -> Tensor:
    """The scale of each element of a weight of this shape, or what broadcasts to it."""
    if block is None:
        return scale
    for axis, size in enumerate(block):
        scale = tenon.repeat(scale, size, axis)
    return scale[: shape[0], : shape[1]]


def scales_of(weight: Tensor) -> Tensor:
    """For each output, the step of 127 levels on each side of 0 that its weights fit."""
    largest = tenon.abs(weight.detach()).flatten(1).max([1])
    return tenon.where(largest == 0, 1.0, largest / 127)


def wide_dtype(dtype: tenon.dtype) -> tenon.dtype:
    """The dtype in which sums of integers are scaled: 16 bits hold neither the sums nor, often, the scales."""
    return tenon.float32 if dtype.itemsize < 4 else dtype


def factor_of(weight_scale: Tensor, scale: Tensor) -> Tensor:
    """What a product of a weight's and a layer's codes stands for."""
    wide = wide_dtype(weight_scale.dtype)
    return weight_scale.to(wide) * scale.to(wide)


class _Int8Layer(nn.Module):
    """Weights as int8 with a scale for each output, and what the layer is called on as uint8."""

    def __init__(self, layer: Any, steps: Steps, observer: str) -> None:
        scale = scales_of(layer.weight)
        weight = tenon.quantize_linear(layer.weight.detach(), scale, axis=0, dtype=tenon.int8)
        self.observer = observer
        self.weight, self.weight_scale = Buffer(weight), Buffer(scale)
        self.scale = Buffer(tenon.tensor(steps.scale, dtype=scale.dtype, device=scale.device))
        self.zero_point = Buffer(
            tenon.tensor(steps.zero_point, dtype=tenon.uint8, device=scale.device)
        )
        self.bias = None if layer.bias is None else Buffer(layer.bias.detach())

    def rounded(self, x: Tensor) -> Tensor:
        return tenon.quantize_linear(x, self.scale, self.zero_point, dtype=tenon.uint8)

    def float_weight(self) -> Tensor:
        return tenon.dequantize_linear(self.weight, self.weight_scale, axis=0)


class Int8Linear(_Int8Layer):
    """linear of integers: uint8 times int8 with sums in int32, exactly, and one multiplication after."""

    def __init__(self, layer: nn.Linear, steps: Steps, observer: str = "") -> None:
        super().__init__(layer, steps, observer)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        sums = self.weight.to(tenon.int32).sum([1])
        self.shift = Buffer(sums.to(tenon.int32) * steps.zero_point)  # what the zero point adds
        self.factor = Buffer(factor_of(self.weight_scale, self.scale))

    def forward(self, x: Tensor) -> Tensor:
        codes = self.rounded(x)
        flat = codes.reshape([-1, self.in_features])
        sums = tenon.matmul_integer(flat, self.weight.transpose(0, 1)) - self.shift
        result = sums.to(wide_dtype(x.dtype)) * self.factor
        if self.bias is not None:
            result = result + self.bias
        return result.to(x.dtype).reshape([*x.shape[:-1], self.out_features])

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Int8Conv(_Int8Layer):
    """A convolution of integers: uint8 times int8 with sums in int32, exactly, and one multiplication
    after. Convolutions over three axes multiply the numbers that the codes stand for, as floats."""

    def __init__(self, layer: Any, steps: Steps, observer: str = "") -> None:
        super().__init__(layer, steps, observer)
        settings = copy.copy(layer)
        del settings.weight, settings.bias
        self._settings = (settings,)  # in a tuple, as it is no part of this layer
        self._integer = layer.axes < 3
        if self._integer:
            beside = [-1] + [1] * layer.axes
            self.factor = Buffer(factor_of(self.weight_scale, self.scale).reshape(beside))

    def forward(self, x: Tensor) -> Tensor:
        settings = self._settings[0]
        if not self._integer:
            rounded = tenon.dequantize_linear(self.rounded(x), self.scale, self.zero_point)
            return call_with(settings, rounded, self.float_weight(), self.bias)
        if x.ndim == settings.axes + 1:  # without a batch
            return self.forward(x.unsqueeze(0)).squeeze(0)
        sums = self._sums(self.rounded(_with_margins(settings, x)))
        result = sums.to(wide_dtype(x.dtype)) * self.factor
        if self.bias is not None:
            result = result + self.bias.reshape([-1] + [1] * settings.axes)
        return result.to(x.dtype)

    def _sums(self, codes: Tensor) -> Tensor:
        settings = self._settings[0]
        weight: Tensor = self.weight
        stride, padding, dilation = settings.stride, settings._symmetric, settings.dilation
        is_row = settings.axes == 1  # an image of one row
        if is_row:
            codes, weight = codes.unsqueeze(2), weight.unsqueeze(2)
            stride, padding, dilation = [1, stride[0]], [0, padding[0]], [1, dilation[0]]
        sums = tenon.conv2d_integer(
            codes,
            weight,
            self.zero_point,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=settings.groups,
        )
        return sums.squeeze(2) if is_row else sums

    def extra_repr(self) -> str:
        settings = self._settings[0]
        return f"{settings.in_channels}, {settings.out_channels}, {settings.kernel_size}"


def _with_margins(settings: Any, x: Tensor) -> Tensor:
    """What a convolution that pads with other than zeros, or unevenly, multiplies."""
    if not settings._margins:
        return x
    mode = "constant" if settings.padding_mode == "zeros" else settings.padding_mode
    return nn.functional.pad(x, settings._margins, mode)
