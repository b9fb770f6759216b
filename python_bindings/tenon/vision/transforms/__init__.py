# SPDX-License-Identifier: Apache-2.0
"""Transforms of images, to be composed. Names and settings are those of torchvision.

Images are tensors [..., C, H, W]. Random transforms draw from Tenon's generator, which
tenon.manual_seed sets, and change all images of a batch alike.
"""

from . import functional
from .color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    Normalize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
)
from .compose import (
    Compose,
    ConvertImageDtype,
    Lambda,
    RandomApply,
    RandomChoice,
    RandomOrder,
    ToTensor,
)
from .geometry import (
    CenterCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "GaussianBlur",
    "Grayscale",
    "Lambda",
    "Normalize",
    "Pad",
    "RandomAffine",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "functional",
]
