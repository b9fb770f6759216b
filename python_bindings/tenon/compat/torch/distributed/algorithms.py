# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.algorithms: how gradients travel, `ddp_comm_hooks.default_hooks` and `.powerSGD_hook`."""

from types import SimpleNamespace

from tenon.distributed import comm_hooks as _hooks
from tenon.distributed import power_sgd as _power_sgd

__all__ = ["ddp_comm_hooks"]

ddp_comm_hooks = SimpleNamespace(default_hooks=_hooks, powerSGD_hook=_power_sgd)
