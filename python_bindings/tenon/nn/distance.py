# SPDX-License-Identifier: Apache-2.0
"""Similarities and distances as modules."""

from __future__ import annotations

from tenon import Tensor

from . import functional as F
from .module import Module


class CosineSimilarity(Module):
    """Cosine of the angle between vectors along axis `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)

    def extra_repr(self) -> str:
        return f"{self.dim}, eps={self.eps}"


class PairwiseDistance(Module):
    """The p-norm of the difference along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)

    def extra_repr(self) -> str:
        return f"{self.p}, eps={self.eps}"
