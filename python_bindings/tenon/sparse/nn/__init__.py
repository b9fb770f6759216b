# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling and normalisation of sites: tensors of layout 'coo' whose stored elements are channels."""

from . import functional
from .layers import (
    BatchNorm,
    Conv2d,
    Conv3d,
    LayerNorm,
    MaxPool2d,
    MaxPool3d,
    Softmax,
    SubmConv2d,
    SubmConv3d,
)

__all__ = [
    "BatchNorm",
    "Conv2d",
    "Conv3d",
    "LayerNorm",
    "MaxPool2d",
    "MaxPool3d",
    "Softmax",
    "SubmConv2d",
    "SubmConv3d",
    "functional",
]
