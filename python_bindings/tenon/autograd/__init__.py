# SPDX-License-Identifier: Apache-2.0
"""Gradients: the recording switch, grad, custom functions, and a check by finite differences."""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from tenon.autograd.finite_differences import gradcheck
from tenon.autograd.function import Function, once_differentiable
from tenon.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from tenon.autograd.gradients import backward, grad
from tenon.autograd.saved_tensors import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

if TYPE_CHECKING:
    from tenon.func.jacobians import hessian as hessian
    from tenon.func.jacobians import jacobian as jacobian
    from tenon.utils.numerics import detect_anomaly as detect_anomaly

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "disable_saved_tensors_hooks",
    "enable_grad",
    "grad",
    "gradcheck",
    "hessian",
    "inference_mode",
    "is_grad_enabled",
    "jacobian",
    "no_grad",
    "save_on_cpu",
    "saved_tensors_hooks",
    "once_differentiable",
    "set_grad_enabled",
]


# What floors above have made of gradients, by the name that users of PyTorch look for it here.
_ABOVE = {
    "detect_anomaly": "tenon.utils.numerics",
    "hessian": "tenon.func.jacobians",
    "jacobian": "tenon.func.jacobians",
}


def __getattr__(name: str) -> Any:
    if name in _ABOVE:
        return getattr(_importlib.import_module(_ABOVE[name]), name)
    raise AttributeError(f"module 'tenon.autograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ABOVE})
