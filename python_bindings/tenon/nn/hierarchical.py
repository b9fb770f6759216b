# SPDX-License-Identifier: Apache-2.0
"""Losses over trees of classes."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class HSigmoidLoss(Module):
    """hsigmoid_loss with the parameters of a tree of `num_classes` leaves.

    With `is_custom`, forward is given the paths; the tree may then have up to `num_classes` nodes.
    """

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        bias: bool = True,
        is_custom: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_classes < 2:
            raise ValueError(f"HSigmoidLoss: expected num_classes >= 2, got {num_classes}")
        self.feature_size, self.num_classes, self.is_custom = feature_size, num_classes, is_custom
        nodes = num_classes if is_custom else num_classes - 1
        options = {"device": device, "dtype": dtype or tenon.float32}
        self.weight = Parameter(tenon.empty([nodes, feature_size], **options))
        self.bias = Parameter(tenon.zeros([nodes], **options)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.feature_size)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        label: Tensor,
        path_table: Tensor | None = None,
        path_code: Tensor | None = None,
    ) -> Tensor:
        if self.is_custom != (path_table is not None):
            raise ValueError(
                f"HSigmoidLoss: expected paths if, and only if, is_custom, which is {self.is_custom}"
            )
        return F.hsigmoid_loss(
            x, label, self.num_classes, self.weight, self.bias, path_table, path_code
        )

    def extra_repr(self) -> str:
        return f"{self.feature_size}, {self.num_classes}"
