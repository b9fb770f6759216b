# SPDX-License-Identifier: Apache-2.0
"""Transforms that call others, and those that make images of data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F


def draw(low: float, high: float) -> float:
    """A random number from `low` to `high`."""
    return low + (high - low) * tenon.uniform([1]).item()


def draw_integer(low: int, high: int) -> int:
    """A random whole number from `low` to below `high`."""
    return int(tenon.randint(low, high, [1]).item())


class Compose:
    """Transforms one after another."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        return f"Compose({self.transforms})"


class Lambda:
    """A function as a transform."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, image: Any) -> Any:
        return self.function(image)


class RandomApply(Compose):
    """Transforms one after another with probability `p`; else the image."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        super().__init__(transforms)
        self.p = p

    def __call__(self, image: Any) -> Any:
        return super().__call__(image) if draw(0, 1) < self.p else image


class RandomChoice(Compose):
    """One of the transforms."""

    def __call__(self, image: Any) -> Any:
        return self.transforms[draw_integer(0, len(self.transforms))](image)


class RandomOrder(Compose):
    """All transforms in random order."""

    def __call__(self, image: Any) -> Any:
        for index in tenon.randperm(len(self.transforms)).tolist():
            image = self.transforms[index](image)
        return image


class ToTensor:
    """Arrays and Pillow images [H, W, C] to tensors [C, H, W] from 0 to 1."""

    def __call__(self, picture: Any) -> Tensor:
        return F.to_tensor(picture)


class ConvertImageDtype:
    """Images in another dtype; the largest integer stands for 1.0."""

    def __init__(self, dtype: tenon.dtype) -> None:
        self.dtype = dtype

    def __call__(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)
