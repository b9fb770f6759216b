# SPDX-License-Identifier: Apache-2.0
"""Limits for gradients, applied in place between backward and step."""

from __future__ import annotations

from collections.abc import Iterable

import tenon
from tenon import Tensor


def clip_grad_norm_(params: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients together so that their Euclidean norm is at most `max_norm`.

    Returns the norm before. Nothing waits for the device.
    """
    grads = _grads(params)
    if not grads:
        return tenon.tensor(0.0)
    with tenon.no_grad():
        device = grads[0].device
        squares = [tenon.sum(tenon.square(grad)).to(device) for grad in grads]
        norm = tenon.sqrt(tenon.sum(tenon.stack(squares)))
        scale = tenon.minimum(max_norm / (norm + 1e-6), 1.0)
        for grad in grads:
            tenon.multiply(grad, scale.to(grad.device), out=grad)
    return norm


def clip_grad_value_(params: Tensor | Iterable[Tensor], limit: float) -> None:
    """Limit every element of the gradients to [-limit, limit]."""
    with tenon.no_grad():
        for grad in _grads(params):
            tenon.clip(grad, -limit, limit, out=grad)


def _grads(params: Tensor | Iterable[Tensor]) -> list[Tensor]:
    params = [params] if isinstance(params, Tensor) else params
    return [param.grad for param in params if param.grad is not None]
