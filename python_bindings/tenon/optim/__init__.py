# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning-rate schedules."""

from . import lr_scheduler
from .algorithms import SGD, Adagrad, Adam, AdamW, Momentum, RMSprop
from .clip import clip_grad_norm_, clip_grad_value_
from .optimizer import Optimizer

__all__ = [
    "Optimizer",
    "SGD",
    "Momentum",
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]
