# SPDX-License-Identifier: Apache-2.0
"""Models whose stages lie on different ranks, and the tables that say what each rank does when."""

from .pipe import Pipeline, pipeline
from .schedule import Action, Schedule
from .schedules import SCHEDULES, schedule_of

__all__ = ["SCHEDULES", "Action", "Pipeline", "Schedule", "pipeline", "schedule_of"]
