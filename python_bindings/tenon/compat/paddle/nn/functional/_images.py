# SPDX-License-Identifier: Apache-2.0
"""paddle.nn.functional: margins, resampling, distances, look-ups and attention."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.paddle.nn.functional._layout import by_format, numbers

__all__ = """affine_grid channel_shuffle cosine_similarity embedding gather_tree grid_sample interpolate one_hot pad
pairwise_distance pixel_shuffle pixel_unshuffle scaled_dot_product_attention sequence_mask temporal_shift
upsample zeropad2d""".split()

_F = tenon.nn.functional


def pad(
    x: Tensor,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
) -> Tensor:
    """With margins. Two numbers for every axis are those of the first axis first, unless
    `pad_from_left_axis` is false; fewer are those of the axes of space, the last one first."""
    sides = numbers(pad)
    if isinstance(sides, int):
        sides = [sides] * (2 * (x.ndim - 2))
    modes = ("constant", "reflect", "replicate", "circular")
    if mode not in modes:
        raise ValueError(f"pad(): expected mode {', '.join(map(repr, modes))}, got {mode!r}")
    if len(sides) == 2 * x.ndim and mode == "constant":
        pairs = [sides[i : i + 2] for i in range(0, len(sides), 2)]
        pairs = pairs if pad_from_left_axis else pairs[::-1]
        return tenon.pad(x, [each for pair in pairs for each in pair], "constant", float(value))
    if x.ndim not in (3, 4, 5) or len(sides) % 2 or len(sides) > 2 * (x.ndim - 2):
        raise ValueError(
            f"pad(): expected two numbers for each axis of space of three, four or five axes, got {sides} "
            f"for shape {tuple(x.shape)}"
        )
    formats = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}[x.ndim]
    data_format = formats[0] if data_format is None else data_format
    return by_format(
        "pad", x, data_format, x.ndim - 2, lambda y: _F.pad(y, sides, mode, float(value))
    )


def zeropad2d(x: Tensor, padding: Any, data_format: str = "NCHW") -> Tensor:
    """Zeros around images: left, right, top and bottom."""
    return pad(x, padding, "constant", 0.0, data_format)


def interpolate(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resampled to a size, or by factors."""
    words = {"nearest": "nearest", "linear": "linear", "bilinear": "bilinear", "area": "area"}
    words |= {"trilinear": "trilinear", "bicubic": "bicubic"}
    name = mode.lower() if isinstance(mode, str) else mode
    if name not in words:
        raise ValueError(f"interpolate(): expected mode {', '.join(words)}, got {mode!r}")
    if align_mode != 0 and not align_corners and name in ("linear", "bilinear", "trilinear"):
        raise NotImplementedError(f"interpolate(): expected align_mode=0, got {align_mode}")
    if name == "nearest" and align_corners:
        raise ValueError("interpolate(): expected align_corners=False beside mode 'nearest'")
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate(): expected one of `size` and `scale_factor`, got both")
    if antialias or recompute_scale_factor:
        raise NotImplementedError(
            "interpolate(): expected antialias=False and no recompute_scale_factor"
        )
    formats = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
    if data_format in ("NCW", "NWC"):
        data_format = {"NCW": "NCL", "NWC": "NLC"}[data_format]
    data_format = formats.get(x.ndim, "") if data_format is None else data_format
    size, scale_factor = numbers(size), numbers(scale_factor)
    corners = None if name in ("nearest", "area") else bool(align_corners)
    return by_format(
        "interpolate",
        x,
        data_format,
        x.ndim - 2,
        lambda y: _F.interpolate(y, size, scale_factor, name, corners),
    )


def upsample(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
) -> Tensor:
    """interpolate()."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


def affine_grid(theta: Tensor, out_shape: Any, align_corners: bool = True) -> Tensor:
    """Where affine maps [N, 2, 3] look for the pixels of images of a shape [N, C, H, W]."""
    return _operator("affine_grid")(theta, list(numbers(out_shape)), bool(align_corners))


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """Images at the points of a grid."""
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample(): expected mode 'bilinear' or 'nearest', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"grid_sample(): expected padding_mode 'zeros', 'border' or 'reflection', got {padding_mode!r}"
        )
    return _operator("grid_sample")(x, grid, mode, padding_mode, bool(align_corners))


def _shuffled(name: str, x: Tensor, data_format: str, *settings: Any) -> Tensor:
    if x.ndim != 4:
        raise ValueError(f"{name}(): expected x of four axes, got shape {tuple(x.shape)}")
    return by_format(name, x, data_format, 2, lambda y: getattr(_F, name)(y, *settings))


def pixel_shuffle(x: Tensor, upscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """Channels as pixels of larger images."""
    return _shuffled("pixel_shuffle", x, data_format, upscale_factor)


def pixel_unshuffle(x: Tensor, downscale_factor: int, data_format: str = "NCHW") -> Tensor:
    """Pixels as channels of smaller images."""
    return _shuffled("pixel_unshuffle", x, data_format, downscale_factor)


def channel_shuffle(x: Tensor, groups: int, data_format: str = "NCHW") -> Tensor:
    """Channels of groups, one of each after another."""
    return _shuffled("channel_shuffle", x, data_format, groups)


def temporal_shift(
    x: Tensor, seg_num: int, shift_ratio: float = 0.25, data_format: str = "NCHW"
) -> Tensor:
    """A part of the channels moved one step in time, another one back."""
    return _shuffled("temporal_shift", x, data_format, seg_num, shift_ratio)


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines between vectors along an axis."""
    dot = (x1 * x2).sum(axis)
    square = (x1 * x1).sum(axis) * (x2 * x2).sum(axis)
    return dot / _operator("sqrt")(_operator("maximum")(square, eps * eps))


def pairwise_distance(
    x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norms of the differences of rows."""
    return tenon.linalg.vector_norm(x - y + epsilon, axis=-1, keepdims=keepdim, ord=float(p))


def embedding(
    x: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Rows of the weight; that of `padding_idx` gives zeros and gets no gradient."""
    if sparse or max_norm is not None:
        raise NotImplementedError("embedding(): expected sparse=False and max_norm=None")
    if padding_idx is None:
        return _F.embedding(x, weight, None, scale_grad_by_freq)
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise ValueError(
            f"embedding(): expected padding_idx from {-rows} to {rows - 1}, got {padding_idx}"
        )
    at = padding_idx % rows
    made = _F.embedding(x, weight, at, scale_grad_by_freq)
    return _operator("where")((x == at).unsqueeze(-1), 0.0, made)


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """Vectors with a 1 at the class, of the default floating dtype; by default of as many classes as the
    largest one asks for."""
    count = numbers(num_classes)
    if count == -1:
        count = int(x.max().item()) + 1
    if count < 1:
        raise ValueError(f"one_hot(): expected at least one class, got {num_classes}")
    if x.numel() and bool(((x < 0) | (x >= count)).any()):
        raise ValueError(f"one_hot(): expected classes from 0 to {count - 1}")
    return _operator("one_hot")(x, count).to(dtype=_core.get_default_dtype())


def sequence_mask(x: Tensor, maxlen: Any = None, dtype: Any = "int64") -> Tensor:
    """1 before each length, then 0; to the largest length by default."""
    return _F.sequence_mask(x, numbers(maxlen), dtype)


def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """The sequences of a beam search."""
    return _operator("gather_tree")(ids, parents)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    training: bool = True,
    scale: float | None = None,
    enable_gqa: bool = True,
) -> Tensor:
    """Attention of [batch, length, heads, depth], whose keys may have fewer heads."""
    for name, each in (("query", query), ("key", key), ("value", value)):
        if each.ndim != 4:
            raise ValueError(
                f"scaled_dot_product_attention(): expected {name} [batch, length, heads, depth], got "
                f"shape {tuple(each.shape)}"
            )
    parts = [each.permute([0, 2, 1, 3]) for each in (query, key, value)]
    grouped = parts[0].shape[1] != parts[1].shape[1]
    if grouped and not enable_gqa:
        raise ValueError(
            "scaled_dot_product_attention(): expected as many heads of keys as queries"
        )
    made = _operator("scaled_dot_product_attention")(
        *parts, attn_mask, float(dropout_p) if training else 0.0, bool(is_causal), scale, grouped
    )
    return made.permute([0, 2, 1, 3])
