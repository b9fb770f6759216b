# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning-rate schedules."""

from tenon.nn.utils import clip_grad as clip  # noqa: F401  tenon.optim.clip, as it was
from tenon.nn.utils.clip_grad import (
    ClipGradByGlobalNorm,
    ClipGradByNorm,
    ClipGradByValue,
    clip_grad_norm_,
    clip_grad_norm_per_parameter_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

from . import lr_scheduler, swa_utils, updates
from .adam_variants import Adamax, NAdam, RAdam
from .adaptive import ASGD, Adadelta, Adafactor, Ftrl, Rprop
from .algorithms import SGD, Adagrad, Adam, AdamW, Momentum, RMSprop
from .layerwise import Lamb, Lars, Muon
from .lbfgs import LBFGS
from .lookahead import LookAhead
from .optimizer import Optimizer

__all__ = [
    "Optimizer",
    "SGD",
    "Momentum",
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Adafactor",
    "Adamax",
    "NAdam",
    "RAdam",
    "ASGD",
    "Rprop",
    "Lamb",
    "Lars",
    "Muon",
    "LBFGS",
    "Ftrl",
    "LookAhead",
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "clip_grad_norm_",
    "clip_grad_norm_per_parameter_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "lr_scheduler",
    "swa_utils",
    "updates",
]
