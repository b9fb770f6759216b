# SPDX-License-Identifier: Apache-2.0
"""Transforms that move pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenon import Tensor

from . import functional as F
from .compose import draw, draw_integer
from .pictures import takes_pictures


def _span(value: float | Sequence[float], name: str, transform: str) -> tuple[float, float]:
    """The limits of a random number: -value and value, or two that are given."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{transform}: expected {name} of at least 0, got {value}")
        return -value, value
    low, high = value
    return low, high


class Resize:
    """Images of height and width `size`; one number is the length of the shorter side."""

    def __init__(
        self,
        size: F.Size,
        interpolation: str = "bilinear",
        max_size: int | None = None,
        antialias: bool = True,
    ) -> None:
        self.settings = (size, interpolation, max_size, antialias)

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.resize(image, *self.settings)


class CenterCrop:
    """The middle of images."""

    def __init__(self, size: F.Size) -> None:
        self.size = F.pair(size)

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.center_crop(image, self.size)


class Pad:
    """Margins around images: one for all sides, (x, y), or (left, top, right, bottom)."""

    def __init__(self, padding: F.Size, fill: float = 0, padding_mode: str = "constant") -> None:
        self.settings = (padding, fill, padding_mode)

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.pad(image, *self.settings)


class RandomCrop:
    """A part of height and width `size`, of the image with `padding` around it."""

    def __init__(
        self,
        size: F.Size,
        padding: F.Size | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size, self.padding, self.pad_if_needed = F.pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        if self.padding is not None:
            image = F.pad(image, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        rows, columns = F.size_of(image)
        if self.pad_if_needed and (rows < height or columns < width):
            margins = (max(width - columns, 0), max(height - rows, 0))
            image = F.pad(image, margins, self.fill, self.padding_mode)
            rows, columns = F.size_of(image)
        if rows < height or columns < width:
            raise ValueError(
                f"RandomCrop: expected an image of at least {height} x {width}, got {rows} x "
                f"{columns}; set padding or pad_if_needed"
            )
        top, left = draw_integer(0, rows - height + 1), draw_integer(0, columns - width + 1)
        return F.crop(image, top, left, height, width)


class RandomResizedCrop:
    """A random part of the image, resized to `size`.

    Its area is a share of the image from `scale`, the quotient of width and height is from `ratio`.
    """

    def __init__(
        self,
        size: F.Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ) -> None:
        if not 0 < scale[0] <= scale[1] or not 0 < ratio[0] <= ratio[1]:
            raise ValueError(
                "RandomResizedCrop: expected scale and ratio above 0 and in ascending order, got "
                f"{scale} and {ratio}"
            )
        self.size, self.scale, self.ratio = F.pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    def part(self, rows: int, columns: int) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random part."""
        for _ in range(10):
            area = rows * columns * draw(*self.scale)
            ratio = math.exp(draw(math.log(self.ratio[0]), math.log(self.ratio[1])))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= columns and 0 < height <= rows:
                top = draw_integer(0, rows - height + 1)
                return top, draw_integer(0, columns - width + 1), height, width
        # No proposal lay inside: the largest part in the middle whose ratio is allowed.
        ratio = min(max(columns / rows, self.ratio[0]), self.ratio[1])
        width, height = min(columns, round(rows * ratio)), min(rows, round(columns / ratio))
        return (rows - height) // 2, (columns - width) // 2, height, width

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        part = self.part(*F.size_of(image))
        return F.resized_crop(image, *part, self.size, self.interpolation, self.antialias)


class RandomHorizontalFlip:
    """Exchanges left and right with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.hflip(image) if draw(0, 1) < self.p else image


class RandomVerticalFlip:
    """Exchanges top and bottom with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.vflip(image) if draw(0, 1) < self.p else image


class RandomRotation:
    """Turns images by an angle from `degrees`, or from -degrees to degrees."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: float = 0,
    ) -> None:
        F.check_rotation("RandomRotation", expand, center)
        self.degrees = _span(degrees, "degrees", "RandomRotation")
        self.interpolation, self.fill = interpolation, fill

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        return F.rotate(image, draw(*self.degrees), self.interpolation, fill=self.fill)


class RandomAffine:
    """Turns images by `degrees`, moves them by shares `translate` of width and height, scales them
    by a factor from `scale` and shears them by angles from `shear` in x and, if it has four
    numbers, in y."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: tuple[float, float] | None = None,
        scale: tuple[float, float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: float = 0,
    ) -> None:
        self.degrees = _span(degrees, "degrees", "RandomAffine")
        self.translate, self.scale = translate or (0.0, 0.0), scale or (1.0, 1.0)
        if shear is None or isinstance(shear, (int, float)):
            self.shear = [*_span(shear or 0.0, "shear", "RandomAffine"), 0.0, 0.0]
        else:
            self.shear = [*shear, 0.0, 0.0][:4]
        self.interpolation, self.fill = interpolation, fill

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        rows, columns = F.size_of(image)
        x, y = self.translate[0] * columns, self.translate[1] * rows
        return F.affine(
            image,
            draw(*self.degrees),
            (round(draw(-x, x)), round(draw(-y, y))),
            draw(*self.scale),
            (draw(*self.shear[:2]), draw(*self.shear[2:])),
            self.interpolation,
            self.fill,
        )


class RandomPerspective:
    """Moves the corners of images inwards with probability `p`, by up to a share `distortion_scale` of half the
    width and half the height."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: str = "bilinear",
        fill: float = 0,
    ) -> None:
        if not 0 <= distortion_scale < 1:
            raise ValueError(
                f"RandomPerspective: expected distortion_scale from 0 to below 1, got {distortion_scale}"
            )
        self.distortion_scale, self.p = distortion_scale, p
        self.interpolation, self.fill = interpolation, fill

    def points(self, rows: int, columns: int) -> tuple[list[list[int]], list[list[int]]]:
        """The corners of an image, clockwise from the upper left, and where they are moved."""
        right, bottom = columns - 1, rows - 1
        reach = [int(self.distortion_scale * (extent // 2)) + 1 for extent in (columns, rows)]
        starts = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
        ends = [
            [abs(corner - draw_integer(0, limit)) for corner, limit in zip(start, reach)]
            for start in starts
        ]
        return starts, ends

    @takes_pictures
    def __call__(self, image: Tensor) -> Tensor:
        if not draw(0, 1) < self.p:
            return image
        return F.perspective(image, *self.points(*F.size_of(image)), self.interpolation, self.fill)
