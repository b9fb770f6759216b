# SPDX-License-Identifier: Apache-2.0
"""Training with a few calls: Model.fit, callbacks, and tables of what a network costs."""

from .callbacks import (
    Callback,
    CSVLogger,
    EarlyStopping,
    GradientNorm,
    LearningCurve,
    LRScheduler,
    ModelCheckpoint,
    TensorBoard,
    Throughput,
)
from .event_writer import EventWriter
from .flops import FlopReport, flops
from .model import Model
from .summary import Summary, summary

__all__ = [
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "EventWriter",
    "FlopReport",
    "GradientNorm",
    "LRScheduler",
    "LearningCurve",
    "Model",
    "ModelCheckpoint",
    "Summary",
    "TensorBoard",
    "Throughput",
    "flops",
    "summary",
]
