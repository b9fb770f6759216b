# SPDX-License-Identifier: Apache-2.0
"""Functions that move elements: blocks of pixels to channels, windows to columns, and back."""

from __future__ import annotations

from collections.abc import Callable

import tenon
from tenon import Tensor

from ._common import Size, check_ndim, spread


def flatten(x: Tensor, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Join axes `start_dim` to `end_dim`; by default all but the batch."""
    return tenon.flatten(x, start_dim, end_dim)


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """[..., C * r * r, H, W] to [..., C, H * r, W * r] (Shi et al., 2016)."""
    return _on_images(tenon.pixel_shuffle, x, upscale_factor)


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """[..., C, H * r, W * r] to [..., C * r * r, H, W]; the inverse of pixel_shuffle."""
    return _on_images(tenon.pixel_unshuffle, x, downscale_factor)


def _on_images(operator: Callable[[Tensor, int], Tensor], x: Tensor, factor: int) -> Tensor:
    """Call an operator on NCHW for any number of leading axes."""
    if x.ndim == 4:
        return operator(x, factor)
    if x.ndim < 3:
        raise ValueError(
            f"{operator.__name__}: expected x of shape [..., C, H, W], got {tuple(x.shape)}"
        )
    out = operator(x.reshape([-1, *x.shape[-3:]]), factor)
    return out.reshape([*x.shape[:-3], *out.shape[1:]])


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave the channels of `groups` groups of [N, C, ...] (Zhang et al., 2018)."""
    return tenon.channel_shuffle(x, groups)


def unfold(
    x: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The windows of `x` [N, C, H, W] as columns: [N, C * KH * KW, windows] (im2col)."""
    check_ndim(x, 4, "[N, C, H, W]", "unfold")
    (kh, kw), (dh, dw) = spread(kernel_size, 2), spread(dilation, 2)
    (ph, pw), (sh, sw) = spread(padding, 2), spread(stride, 2)
    if ph or pw:
        x = tenon.pad(x, [0, 0, 0, 0, ph, ph, pw, pw])
    windows = tenon.sliding_window(tenon.sliding_window(x, 2, kh, sh, dh), 3, kw, sw, dw)
    n, c, lh, lw = windows.shape[:4]
    return windows.permute([0, 1, 4, 5, 2, 3]).reshape([n, c * kh * kw, lh * lw])


def fold(
    x: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Add the columns of `x` [N, C * KH * KW, windows] to the windows of [N, C, H, W] (col2im)."""
    check_ndim(x, 3, "[N, C * KH * KW, windows]", "fold")
    (h, w), (kh, kw) = spread(output_size, 2), spread(kernel_size, 2)
    (dh, dw), (ph, pw) = spread(dilation, 2), spread(padding, 2)
    sh, sw = spread(stride, 2)
    height, width = h + 2 * ph, w + 2 * pw
    lh, lw = (height - dh * (kh - 1) - 1) // sh + 1, (width - dw * (kw - 1) - 1) // sw + 1
    n, columns, windows = x.shape
    if columns % (kh * kw) or windows != lh * lw:
        raise ValueError(
            f"fold: expected x of shape [N, C * {kh * kw}, {lh * lw}] for an output of {h} x {w}, "
            f"got {tuple(x.shape)}"
        )
    c = columns // (kh * kw)

    def offsets(kernel: int, dilation: int, count: int, stride: int) -> Tensor:
        inside = tenon.arange(kernel, device=x.device) * dilation
        return inside.unsqueeze(1) + tenon.arange(count, device=x.device) * stride

    rows = offsets(kh, dh, lh, sh).reshape([kh, 1, lh, 1])
    cols = offsets(kw, dw, lw, sw).reshape([1, kw, 1, lw])
    index = (rows * width + cols).reshape([-1])
    out = tenon.index_add(
        tenon.zeros([n, c, height * width], dtype=x.dtype, device=x.device),
        index,
        x.reshape([n, c, kh * kw * lh * lw]),
        2,
    ).reshape([n, c, height, width])
    return out[:, :, ph : ph + h, pw : pw + w] if ph or pw else out


def temporal_shift(x: Tensor, seg_num: int, shift_ratio: float = 0.25) -> Tensor:
    """Shift a part of the channels of [N * seg_num, C, H, W] by one time step to either side
    (Lin et al., 2019)."""
    nt, c, h, w = x.shape
    x = x.reshape([nt // seg_num, seg_num, c, h, w])
    first, second = int(c * shift_ratio), int(c * 2 * shift_ratio)
    earlier = tenon.pad(x[:, :-1, :first], [0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    later = tenon.pad(x[:, 1:, first:second], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    return tenon.concat([earlier, later, x[:, :, second:]], 2).reshape([nt, c, h, w])
