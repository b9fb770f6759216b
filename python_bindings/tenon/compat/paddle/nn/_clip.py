# SPDX-License-Identifier: Apache-2.0
"""Limits of gradients, which optimizers take as `grad_clip`: called with pairs of parameters and gradients, they give such
pairs with other gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import tenon
from tenon._core import Tensor

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]

Pairs: TypeAlias = "Sequence[tuple[Tensor, Tensor]]"


class ClipGradByValue:
    """Every element to [min, max]; `min` is -max unless given."""

    def __init__(self, max: float, min: float | None = None) -> None:
        if min is None and max <= 0:
            raise ValueError(f"ClipGradByValue(): expected max > 0 without min, got {max}")
        self.max, self.min = float(max), -float(max) if min is None else float(min)

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor]]:
        return [(param, tenon.clip(grad, self.min, self.max)) for param, grad in params_grads]


class ClipGradByNorm:
    """Every gradient by itself to a norm of at most `clip_norm`."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor]]:
        return [
            (param, _scaled(grad, self.clip_norm, tenon.sqrt(_sum_of_squares(grad))))
            for param, grad in params_grads
        ]


class ClipGradByGlobalNorm:
    """All gradients together to a norm of at most `clip_norm`."""

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        if group_name != "default_group" or auto_skip_clip:
            raise NotImplementedError(
                "ClipGradByGlobalNorm(): expected group_name='default_group' and auto_skip_clip=False, got "
                f"{group_name!r} and {auto_skip_clip}"
            )
        self.clip_norm = float(clip_norm)

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor]]:
        if not params_grads:
            return []
        device = params_grads[0][1].device
        squares = [_sum_of_squares(grad).to(device) for _, grad in params_grads]
        norm = tenon.sqrt(tenon.sum(tenon.stack(squares)))
        return [
            (param, _scaled(grad, self.clip_norm, norm.to(grad.device)))
            for param, grad in params_grads
        ]


def _sum_of_squares(grad: Tensor) -> Tensor:
    """In float32 of what is narrower, whose squares are infinite soon."""
    wide = grad.to(tenon.float32) if grad.dtype.itemsize < 4 else grad
    return tenon.sum(tenon.square(wide))


def _scaled(grad: Tensor, limit: float, norm: Tensor) -> Tensor:
    return grad * (limit / tenon.maximum(norm, limit)).to(grad.dtype)
