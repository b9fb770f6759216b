# SPDX-License-Identifier: Apache-2.0
"""Pictures of batches: images side by side, and files of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

__all__ = ["make_grid", "save_image"]


def make_grid(
    tensor: Tensor | Sequence[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images [N, C, H, W] side by side in one [3, H', W'], `nrow` in a row, with margins of `pad_value`.

    Images of one channel become three equal ones. With `normalize` numbers are shifted and scaled to 0 to 1, from
    `value_range` or from their own smallest and largest number, of all images or of each (`scale_each`).
    """
    images = tensor if isinstance(tensor, Tensor) else tenon.stack(list(tensor))
    if not 2 <= images.ndim <= 4:
        raise ValueError(
            f"make_grid(): expected images [N, C, H, W], [C, H, W] or [H, W], got shape {tuple(images.shape)}"
        )
    while images.ndim < 4:
        images = images.unsqueeze(0)
    if images.shape[1] == 1:
        images = tenon.concat([images, images, images], 1)
    if normalize:
        parts = [images[i : i + 1] for i in range(images.shape[0])] if scale_each else [images]
        images = tenon.concat([_normalized(part, value_range) for part in parts], 0)
    count, channels, height, width = images.shape
    if count == 1:
        return images[0]
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    grid = tenon.full(
        [channels, rows * (height + padding) + padding, columns * (width + padding) + padding],
        pad_value,
        dtype=images.dtype,
        device=images.device,
    )
    for i in range(count):
        top = padding + i // columns * (height + padding)
        left = padding + i % columns * (width + padding)
        grid[:, top : top + height, left : left + width] = images[i]
    return grid


def _normalized(images: Tensor, value_range: tuple[float, float] | None) -> Tensor:
    if value_range is None:
        low, high = tenon.min(images).item(), tenon.max(images).item()
    else:
        low, high = value_range
    return (tenon.clip(images, low, high) - low) / max(high - low, 1e-5)


def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:
    """Write make_grid(tensor, **options), numbers from 0 to 1, as a picture to a path or a file, by Pillow."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "save_image(): expected the package Pillow, which writes pictures; install it"
        ) from None
    grid = make_grid(tensor, **options)
    numbers = tenon.clip(grid * 255 + 0.5, 0, 255).to("uint8")
    Image.fromarray(numbers.permute([1, 2, 0]).cpu().contiguous().numpy()).save(fp, format=format)
