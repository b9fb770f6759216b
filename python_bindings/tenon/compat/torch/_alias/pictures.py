# SPDX-License-Identifier: Apache-2.0
"""torchvision: tenon.vision by torchvision's names."""

from __future__ import annotations

import enum
from typing import Any

from tenon import data
from tenon.vision import datasets
from tenon.vision.transforms.pictures import pixels_of

from .absent import absent_class

__all__ = ["Datasets", "Layers", "Top", "Transforms"]


class _WithoutChannels:
    """Images of one channel, of which a program sees `data` as [n, H, W]."""

    data: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.data = self.data.reshape([self.data.shape[0], *self.data.shape[2:]])

    def __getitem__(self, index: int) -> Any:
        whole, self.data = self.data, self.data.unsqueeze(1)
        try:
            return super().__getitem__(index)  # type: ignore[misc]
        finally:
            self.data = whole


class MNIST(_WithoutChannels, datasets.MNIST):
    """tenon.vision.datasets.MNIST."""


class FashionMNIST(_WithoutChannels, datasets.FashionMNIST):
    """tenon.vision.datasets.FashionMNIST."""


class Datasets:
    """torchvision.datasets, beside tenon.vision.datasets."""

    ImageFolder = data.ImageFolder
    MNIST, FashionMNIST = MNIST, FashionMNIST


for _name in "CocoDetection INaturalist ImageNet KMNIST LSUN Places365 QMNIST STL10 SVHN".split():
    setattr(Datasets, _name, absent_class(f"torchvision.datasets.{_name}"))


class InterpolationMode(enum.Enum):
    """How images are resampled."""

    NEAREST, NEAREST_EXACT, BILINEAR, BICUBIC = "nearest", "nearest-exact", "bilinear", "bicubic"
    BOX, HAMMING, LANCZOS = "box", "hamming", "lanczos"


class Transforms:
    """torchvision.transforms, beside tenon.vision.transforms."""

    InterpolationMode = InterpolationMode
    pil_to_tensor = staticmethod(pixels_of)


class Layers:
    """torchvision.ops.misc."""

    FrozenBatchNorm2d = absent_class("torchvision.ops.misc.FrozenBatchNorm2d")


class Top:
    """torchvision."""

    __version__ = "0.30.0"
