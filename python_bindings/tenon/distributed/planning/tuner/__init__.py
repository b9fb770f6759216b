# SPDX-License-Identifier: Apache-2.0
"""The tuner: all ways of dividing a step over ranks, simulated; `tenon tune`."""

from .recipe import Config, Layout, Recipe
from .tune import Candidate, TuningReport, tune

__all__ = ["Candidate", "Config", "Layout", "Recipe", "TuningReport", "tune"]
