# SPDX-License-Identifier: Apache-2.0
"""Where a program's time goes: operators, parts of the program, modules, devices."""

from .events import Event
from .profile import ProfilerAction, profile, schedule
from .scope import record_function
from .table import Row, Table

__all__ = [
    "Event",
    "ProfilerAction",
    "Row",
    "Table",
    "profile",
    "record_function",
    "schedule",
]
