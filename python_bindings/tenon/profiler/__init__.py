# SPDX-License-Identifier: Apache-2.0
"""Where a program's time goes: operators, parts of the program, modules, devices.

`profile` puts the records of all together; `device_profile` shows those that a device has made by its own clock
(also `tenon.profile`).
"""

from .device_profile import device_profile
from .events import Event
from .profile import ProfilerAction, profile, schedule
from .scope import record_function
from .table import Row, Table

__all__ = [
    "Event",
    "ProfilerAction",
    "Row",
    "Table",
    "device_profile",
    "profile",
    "record_function",
    "schedule",
]
