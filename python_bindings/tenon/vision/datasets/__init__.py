# SPDX-License-Identifier: Apache-2.0
"""Image data sets that lie in local files or come with installed packages. Nothing is
downloaded."""

from tenon.data import ImageFolder

from .arrays import ImageArrays
from .cifar import CIFAR10, CIFAR100
from .digits import Digits
from .fake import FakeData
from .mnist import MNIST, FashionMNIST, read_idx

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "Digits",
    "FakeData",
    "FashionMNIST",
    "ImageArrays",
    "ImageFolder",
    "MNIST",
    "read_idx",
]
