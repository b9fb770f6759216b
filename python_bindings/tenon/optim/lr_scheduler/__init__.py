# SPDX-License-Identifier: Apache-2.0
"""Schedules of the learning rate.

Call step() after each optimizer.step(), or after each epoch, if that is the unit.
"""

from .base import LRScheduler
from .combined import ChainedScheduler, LinearWarmup, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cyclic import CyclicLR, OneCycleLR
from .decay import InverseTimeLR, NaturalExpLR, NoamLR, PiecewiseLR
from .factor import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "ChainedScheduler",
    "LinearWarmup",
    "NoamLR",
    "PiecewiseLR",
    "NaturalExpLR",
    "InverseTimeLR",
]
