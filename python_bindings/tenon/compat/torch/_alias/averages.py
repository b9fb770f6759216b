# SPDX-License-Identifier: Apache-2.0
"""torch.optim.swa_utils: averages by functions of lists of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
from tenon import nn
from tenon._core import Tensor
from tenon.optim import swa_utils

__all__ = ["AveragedModel", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn"]

_Lists = Callable[[Any, Any, Any], None]


class AveragedModel(swa_utils.AveragedModel):
    """tenon.optim.swa_utils.AveragedModel. `multi_avg_fn` writes into lists of averages, here of one at a time."""

    def __init__(
        self,
        model: nn.Module,
        device: Any = None,
        avg_fn: Any = None,
        multi_avg_fn: _Lists | None = None,
        use_buffers: bool = False,
    ) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel(): expected one of avg_fn and multi_avg_fn, got both")
        super().__init__(
            model, device, avg_fn if multi_avg_fn is None else _single(multi_avg_fn), use_buffers
        )


def _single(function: _Lists) -> Callable[[Tensor, Tensor, int], Tensor]:
    def average(averaged: Tensor, current: Tensor, count: int) -> Tensor:
        kept = averaged.clone()
        function([kept], [current], count)
        return kept

    return average


def _of_lists(function: Any) -> _Lists:
    def average(averaged: Any, current: Any, count: Any) -> None:
        with tenon.no_grad():
            for own, other in zip(averaged, current, strict=True):
                own.copy_(function(own, other, count))

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> _Lists:
    """get_ema_avg_fn() of lists."""
    return _of_lists(swa_utils.get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> _Lists:
    """get_swa_avg_fn() of lists."""
    return _of_lists(swa_utils.get_swa_avg_fn())
