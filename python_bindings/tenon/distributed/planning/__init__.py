# SPDX-License-Identifier: Apache-2.0
"""What a step of training costs on ranks that need not be there, and how long it takes: docs/distributed.md, "Planning"."""

from .auto import Plan, auto
from .calibration import calibrate
from .events import Compute, Mark, StepTrace, Transfer, Wait
from .machine import Link, Machine
from .prediction import Prediction, play_schedule, predict
from .simulator import Timeline, simulate
from .tracing import mark, trace_step
from .tuner import Config, Layout, Recipe, TuningReport, tune

__all__ = [
    "Compute",
    "Config",
    "Layout",
    "Link",
    "Machine",
    "Mark",
    "Plan",
    "Prediction",
    "Recipe",
    "StepTrace",
    "Timeline",
    "Transfer",
    "TuningReport",
    "Wait",
    "auto",
    "calibrate",
    "mark",
    "play_schedule",
    "predict",
    "simulate",
    "trace_step",
    "tune",
]
