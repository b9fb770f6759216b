# SPDX-License-Identifier: Apache-2.0
"""float32 copies of parameters that are in low precision."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def is_low_precision(tensor: Tensor) -> bool:
    return tensor.dtype in (tenon.float16, tenon.bfloat16)


def master_weight(param: Tensor, state: dict[str, Any]) -> Tensor:
    """The float32 copy of `param` in `state`; made at the first call, when other state, of steps
    without it, becomes float32 as well."""
    if "master" not in state:
        for name, value in state.items():
            if isinstance(value, Tensor) and is_low_precision(value):
                state[name] = value.to(tenon.float32)
        state["master"] = param.detach().to(tenon.float32)
    return state["master"]
