# SPDX-License-Identifier: Apache-2.0
"""Batch norms whose statistics and factors do not change."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor, nn


class FrozenBatchNorm2d(nn.Module):
    """The batch norm of images [N, C, H, W] by statistics and factors that are buffers: they are loaded, and neither training nor `train()` changes
    them. State dicts of nn.BatchNorm2d load; with `strict=False`, as they have a number of batches, too."""

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        self.num_features, self.eps = num_features, eps
        self.weight = nn.Buffer(tenon.ones([num_features]))
        self.bias = nn.Buffer(tenon.zeros([num_features]))
        self.running_mean = nn.Buffer(tenon.zeros([num_features]))
        self.running_var = nn.Buffer(tenon.ones([num_features]))

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * tenon.rsqrt(self.running_var + self.eps)
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape([1, -1, 1, 1]) + shift.reshape([1, -1, 1, 1])

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}"

    @classmethod
    def convert(cls, module: nn.Module, eps: float | None = None) -> nn.Module:
        """`module` with this norm in the place of every nn.BatchNorm2d, of the same statistics, factors, dtype and, if none is given, `eps`; a norm itself
        gives the one for it. torchvision's first weights for COCO were trained with an `eps` of 0."""
        if isinstance(module, nn.BatchNorm2d):
            return cls._of(module, module.eps if eps is None else eps)
        for name, child in list(module.named_children()):
            module.add_module(name, cls.convert(child, eps))
        return module

    @classmethod
    def _of(cls, norm: Any, eps: float) -> FrozenBatchNorm2d:
        if norm.running_mean is None:
            raise ValueError(
                "FrozenBatchNorm2d.convert(): expected norms with track_running_stats=True, got one without statistics"
            )
        like = {"dtype": norm.running_mean.dtype, "device": norm.running_mean.device}
        frozen = cls(norm.num_features, eps).to(**like).train(norm.training)
        with tenon.no_grad():
            frozen.running_mean.copy_(norm.running_mean)
            frozen.running_var.copy_(norm.running_var)
            if norm.weight is not None:
                frozen.weight.copy_(norm.weight)
            if norm.bias is not None:
                frozen.bias.copy_(norm.bias)
        return frozen
