# SPDX-License-Identifier: Apache-2.0
"""What one says to a device beside calling operators: what it can do, its memory, captured work, memory that processes
share.

`tenon.memory` and `tenon.ipc` are the modules `memory` and `ipc` in here, and `tenon.Graph` is `WorkGraph`.
"""

from tenon.runtime import ipc, memory
from tenon.runtime.devices import Capabilities, capabilities, device_kinds, devices
from tenon.runtime.work_graph import WorkGraph

__all__ = ["Capabilities", "WorkGraph", "capabilities", "device_kinds", "devices", "ipc", "memory"]
