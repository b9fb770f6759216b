# SPDX-License-Identifier: Apache-2.0
"""paddle.optimizer: Tenon's optimizers with Paddle's parameters, schedules and limits of gradients."""

from tenon.compat.paddle.optimizer import lr  # noqa: F401
from tenon.compat.paddle.optimizer._base import Optimizer
from tenon.compat.paddle.optimizer._rules import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)

__all__ = [
    "ASGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Lamb",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "SGD",
]
