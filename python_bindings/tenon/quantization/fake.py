# SPDX-License-Identifier: Apache-2.0
"""Quantisation in the middle of training, by the names of Paddle's operators.

`bits` are those of signed integers, whose largest is `2^(bits - 1) - 1`. Results of `fake_quantize_*` are these integers in the dtype of
`x`; those of `fake_quantize_dequantize_*` are what is left of `x`. Gradients are those of the formula without the rounding, and go
through `x` alone. `round_half` says where halves go: 'away' from zero, or to 'even' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import tenon
from tenon import Tensor

from .layers import wide_dtype

__all__ = [
    "dequantize_abs_max",
    "dequantize_log",
    "fake_channel_wise_dequantize_max_abs",
    "fake_channel_wise_quantize_abs_max",
    "fake_channel_wise_quantize_dequantize_abs_max",
    "fake_dequantize_max_abs",
    "fake_quantize_abs_max",
    "fake_quantize_dequantize_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
    "llm_int8_linear",
]


def _largest(bits: int, function: str) -> int:
    if not 2 <= bits <= 16:
        raise ValueError(f"{function}: expected bits from 2 to 16, got {bits}")
    return 2 ** (bits - 1) - 1


def _rounded(x: Tensor, round_half: str, function: str) -> Tensor:
    """`x` rounded, with the gradient of `x`."""
    if round_half not in ("away", "even"):
        raise ValueError(f"{function}: expected round_half 'away' or 'even', got {round_half!r}")
    flat = x.detach()
    whole = (
        tenon.round(flat) if round_half == "even" else tenon.trunc(flat + 0.5 * tenon.sign(flat))
    )
    return x + (whole - flat)


def _beside(scale: Tensor, x: Tensor, axis: int | None, function: str) -> Tensor:
    """A scale for each slice of an axis, or one, in a shape that broadcasts with `x`."""
    if axis is None:
        if scale.numel() != 1:
            raise ValueError(f"{function}: expected one scale, got shape {tuple(scale.shape)}")
        return scale.reshape([])
    if not -x.ndim <= axis < x.ndim or scale.numel() != x.shape[axis]:
        raise ValueError(
            f"{function}: expected a scale for each slice of axis {axis} of shape {tuple(x.shape)}, got "
            f"shape {tuple(scale.shape)}"
        )
    shape = [1] * x.ndim
    shape[axis] = -1
    return scale.reshape(shape)


def _quantized(
    x: Tensor, scale: Tensor, bits: int, axis: int | None, round_half: str, function: str
) -> Tensor:
    """Integers for numbers up to `scale`; a scale of 0 makes zeros."""
    largest = _largest(bits, function)
    wide = _beside(scale.detach(), x, axis, function)
    # Not minimum and maximum, whose gradients are halved at ties: the largest number is its own scale.
    flat = x.detach()
    inside = tenon.where(tenon.abs(flat) <= wide, x, wide * tenon.sign(flat))
    safe = tenon.where(wide > 0, wide, 1.0)
    return _rounded(inside * (largest / safe), round_half, function)


def _abs_max(x: Tensor, axis: int | None) -> Tensor:
    size = tenon.abs(x.detach())
    if axis is None:
        return size.max()
    return tenon.max(size, [i for i in range(x.ndim) if i != axis % x.ndim])


def fake_quantize_abs_max(
    x: Tensor, bits: int = 8, round_half: str = "away"
) -> tuple[Tensor, Tensor]:
    """Integers whose scale is the largest magnitude, which is also returned."""
    scale = _abs_max(x, None)
    return _quantized(x, scale, bits, None, round_half, "fake_quantize_abs_max"), scale


def fake_quantize_dequantize_abs_max(
    x: Tensor, bits: int = 8, round_half: str = "away"
) -> tuple[Tensor, Tensor]:
    """What fake_quantize_abs_max leaves of `x`, and the largest magnitude."""
    whole, scale = fake_quantize_abs_max(x, bits, round_half)
    return fake_dequantize_max_abs(whole, scale, _largest(bits, "fake_quantize_abs_max")), scale


def fake_channel_wise_quantize_abs_max(
    x: Tensor, bits: int = 8, axis: int = 0, round_half: str = "away"
) -> tuple[Tensor, Tensor]:
    """fake_quantize_abs_max with a scale for each slice of an axis."""
    scale = _abs_max(x, axis)
    return _quantized(x, scale, bits, axis, round_half, "fake_channel_wise_quantize_abs_max"), scale


def fake_channel_wise_quantize_dequantize_abs_max(
    x: Tensor, bits: int = 8, axis: int = 0, round_half: str = "away"
) -> tuple[Tensor, Tensor]:
    """What fake_channel_wise_quantize_abs_max leaves of `x`, and the scales."""
    whole, scale = fake_channel_wise_quantize_abs_max(x, bits, axis, round_half)
    return fake_channel_wise_dequantize_max_abs(whole, [scale], [bits], axis), scale


def fake_dequantize_max_abs(x: Tensor, scale: Tensor, max_range: float) -> Tensor:
    """`x * scale / max_range` for one scale."""
    return x * (_beside(scale, x, None, "fake_dequantize_max_abs") / max_range)


def dequantize_abs_max(x: Tensor, scale: Tensor, max_range: float) -> Tensor:
    """fake_dequantize_max_abs of integers, in the dtype of the scale."""
    return fake_dequantize_max_abs(x.cast(scale.dtype), scale, max_range)


def dequantize_log(x: Tensor, table: Tensor) -> Tensor:
    """Numbers of a table of 128 for int8: `table[x]`, and `-table[x + 128]` for negative ones."""
    if str(x.dtype) != "int8" or list(table.shape) != [128]:
        raise ValueError(
            f"dequantize_log: expected int8 and a table of 128 numbers, got {x.dtype} and shape {tuple(table.shape)}"
        )
    index = x.cast(tenon.int64)
    chosen = tenon.index_select(table, tenon.where(index < 0, index + 128, index).reshape([-1]), 0)
    chosen = chosen.reshape([*x.shape])
    return tenon.where(index < 0, -chosen, chosen)


def fake_channel_wise_dequantize_max_abs(
    x: Tensor, scales: Sequence[Tensor], quant_bits: Sequence[int] = (8,), axis: int = 0
) -> Tensor:
    """`x * scale / (2^(bits - 1) - 1)` with a scale for each slice of an axis, and then once more with a second scale,
    which is one number: that of the activations, where the first ones are of a weight."""
    name = "fake_channel_wise_dequantize_max_abs"
    if not 1 <= len(scales) <= 2 or len(scales) != len(quant_bits):
        raise ValueError(
            f"{name}: expected one or two scales and as many quant_bits, got {len(scales)} and {len(quant_bits)}"
        )
    out = x * (_beside(scales[0], x, axis, name) / _largest(quant_bits[0], name))
    if len(scales) == 2:
        out = fake_dequantize_max_abs(out, scales[1], _largest(quant_bits[1], name))
    return out


def fake_quantize_moving_average_abs_max(
    x: Tensor,
    scale: Tensor,
    accum: Tensor | None = None,
    state: Tensor | None = None,
    moving_rate: float = 0.9,
    bits: int = 8,
    is_test: bool = False,
    round_half: str = "away",
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Integers whose scale is a moving average of largest magnitudes: `accum / state`, of which the first becomes `moving_rate * accum +
    max(abs(x))` and the second `moving_rate * state + 1`. With `is_test` the scale is `scale`, and nothing changes.

    Returns the integers, the scale, `accum` and `state`.
    """
    name = "fake_quantize_moving_average_abs_max"
    if not is_test:
        if accum is None or state is None:
            raise ValueError(
                f"{name}: expected accum and state, which training needs; or pass is_test=True"
            )
        accum = moving_rate * accum + _abs_max(x, None)
        state = moving_rate * state + 1.0
        scale = accum / state
    return _quantized(x, scale, bits, None, round_half, name), scale, accum, state


def fake_quantize_dequantize_moving_average_abs_max(
    x: Tensor,
    scale: Tensor,
    accum: Tensor | None = None,
    state: Tensor | None = None,
    moving_rate: float = 0.9,
    bits: int = 8,
    is_test: bool = False,
    round_half: str = "away",
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """What fake_quantize_moving_average_abs_max leaves of `x`, and its other results."""
    whole, scale, accum, state = fake_quantize_moving_average_abs_max(
        x, scale, accum, state, moving_rate, bits, is_test, round_half
    )
    largest = _largest(bits, "fake_quantize_moving_average_abs_max")
    return fake_dequantize_max_abs(whole, scale, largest), scale, accum, state


def fake_quantize_range_abs_max(
    x: Tensor,
    scale: Tensor,
    scales: Tensor | None = None,
    step: int = 0,
    bits: int = 8,
    is_test: bool = False,
    round_half: str = "away",
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Integers whose scale is the largest magnitude of the last steps: `scales` [window] holds theirs, of which this one replaces
    place `step % window`. With `is_test` the scale is `scale`, and nothing changes.

    Returns the integers, the scale and `scales`.
    """
    name = "fake_quantize_range_abs_max"
    if not is_test:
        if scales is None or scales.ndim != 1 or scales.shape[0] < 1 or step < 0:
            raise ValueError(
                f"{name}: expected scales [window] and a step of at least 0, which training needs; or pass is_test=True"
            )
        window = scales.shape[0]
        place = tenon.arange(window, device=x.device)
        scales = tenon.where(place == step % window, _abs_max(x, None).cast(scales.dtype), scales)
        scale = tenon.where(place <= step, scales, 0.0).max()
    return _quantized(x, scale, bits, None, round_half, name), scale, scales


def llm_int8_linear(
    x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None, threshold: float = 6.0
) -> Tensor:
    """A linear layer of an int8 `weight` [out, in] with a `scale` for each row, whose input is rounded to int8 row by row, but for features
    of which an element is at least `threshold`: those stay floats (LLM.int8; Dettmers et al., 2022)."""
    name = "llm_int8_linear"
    if str(weight.dtype) != "int8" or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"{name}: expected x [..., in] and an int8 weight [out, in], got shape {tuple(x.shape)} and "
            f"{weight.dtype} of shape {tuple(weight.shape)}"
        )
    # The sums of products of integers are beyond what 16 bits hold.
    wide = wide_dtype(x.dtype)
    rows = x.reshape([-1, x.shape[-1]]).cast(wide)
    scale = _beside(scale, weight, 0, name).cast(wide)
    large = tenon.any(tenon.abs(rows) >= threshold, 0)
    usual = tenon.where(large, 0.0, rows)
    size = tenon.abs(usual).max([1], keepdim=True) / 127.0
    whole = tenon.round(usual / tenon.where(size > 0, size, 1.0)).cast(tenon.int8)
    out = tenon.matmul_integer(whole, weight.T).cast(wide) * size * scale.reshape([1, -1])
    out = out + tenon.linear(tenon.where(large, rows, 0.0), weight.cast(wide) * scale)
    out = out if bias is None else out + bias
    return out.cast(x.dtype).reshape([*x.shape[:-1], weight.shape[0]])
