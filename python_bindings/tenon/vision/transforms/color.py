# SPDX-License-Identifier: Apache-2.0
"""Transforms that change values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tenon
from tenon import Tensor

from . import functional as F
from .compose import draw, draw_integer
from .pictures import takes_pictures


class Normalize:
    """`(image - mean) / std` of every channel."""

    def __init__(
        self,
        mean: float | Sequence[float],
        std: float | Sequence[float],
        inplace: bool = False,
    ) -> None:
        # `inplace` saves memory in torchvision; here results are always new.
        self.mean = mean if isinstance(mean, (int, float)) else list(mean)
        self.std = std if isinstance(std, (int, float)) else list(std)

    def __call__(self, image: Tensor) -> Tensor:
        return F.normalize(image, self.mean, self.std)


class Grayscale:
    """Shades of grey in one channel or in three."""

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.rgb_to_grayscale(image, self.num_output_channels)


class RandomGrayscale:
    """Shades of grey, in as many channels, with probability `p`."""

    def __init__(self, p: float = 0.1) -> None:
        self.p = p

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.rgb_to_grayscale(image, image.shape[-3]) if draw(0, 1) < self.p else image


class RandomInvert:
    """The negative with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.invert(image) if draw(0, 1) < self.p else image


class GaussianBlur:
    """A normal filter of odd size, whose `sigma` is a number or random between two."""

    def __init__(self, kernel_size: F.Size, sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        self.kernel_size = kernel_size
        self.sigma = (sigma, sigma) if isinstance(sigma, (int, float)) else tuple(sigma)

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.gaussian_blur(image, self.kernel_size, draw(*self.sigma))


class ColorJitter:
    """Random brightness, contrast, saturation and hue, in random order.

    A number v stands for a factor from max(0, 1 - v) to 1 + v, and for a hue from -v to v.
    """

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
    ) -> None:
        self.changes = [
            (F.adjust_brightness, self._limits(brightness, "brightness", 1.0, 0.0, math.inf)),
            (F.adjust_contrast, self._limits(contrast, "contrast", 1.0, 0.0, math.inf)),
            (F.adjust_saturation, self._limits(saturation, "saturation", 1.0, 0.0, math.inf)),
            (F.adjust_hue, self._limits(hue, "hue", 0.0, -0.5, 0.5)),
        ]

    @staticmethod
    def _limits(
        value: float | Sequence[float], name: str, center: float, least: float, most: float
    ) -> tuple[float, float]:
        if isinstance(value, (int, float)):
            if value < 0:
                raise ValueError(f"ColorJitter: expected {name} of at least 0, got {value}")
            low, high = center - value, center + value
            low = max(low, least) if least == 0 else low
        else:
            low, high = value
        if not least <= low <= high <= most:
            raise ValueError(
                f"ColorJitter: expected {name} from {least} to {most}, got {low} to {high}"
            )
        return low, high

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        for index in tenon.randperm(len(self.changes)).tolist():
            change, (low, high) = self.changes[index]
            if low != high or low != (0.0 if change is F.adjust_hue else 1.0):
                image = change(image, draw(low, high))
        return image


class RandomErasing:
    """Fills a random rectangle with `value`, or with normal noise if it is 'random', with
    probability `p`.

    Its area is a share of the image from `scale`, the quotient of height and width is from `ratio`.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float | str = 0,
    ) -> None:
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: expected a number or 'random', got {value!r}")
        self.p, self.scale, self.ratio, self.value = p, scale, ratio, value

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        if draw(0, 1) >= self.p:
            return image
        rows, columns = F.size_of(image)
        for _ in range(10):
            area = rows * columns * draw(*self.scale)
            ratio = math.exp(draw(math.log(self.ratio[0]), math.log(self.ratio[1])))
            height, width = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < height < rows and 0 < width < columns:
                top = draw_integer(0, rows - height + 1)
                left = draw_integer(0, columns - width + 1)
                value: float | Tensor
                if isinstance(self.value, str):
                    shape = [*image.shape[:-2], height, width]
                    value = tenon.normal(shape, dtype=image.dtype, device=image.device)
                else:
                    value = self.value
                return F.erase(image, top, left, height, width, value)
        return image
