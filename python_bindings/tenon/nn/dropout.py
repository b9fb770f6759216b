# SPDX-License-Identifier: Apache-2.0
"""Dropout of elements and of channels. All of them pass their input on unchanged in evaluation."""

from __future__ import annotations

from typing import Any

from tenon import Tensor

from . import functional as F
from .module import Module


class Dropout(Module):
    """In training, zeroes elements with probability `p` and scales the others by 1 / (1 - p). The numbers are those
    of `generator`, a tenon.random.Generator, where one is given."""

    def __init__(self, p: float = 0.5, inplace: bool = False, *, generator: Any = None) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{type(self).__name__}: expected a probability, got {p}")
        self.p, self.generator = p, generator

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"{self.p}"


class Dropout1d(Dropout):
    """Dropout of whole channels of [N, C, L]."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout1d(x, self.p, self.training, generator=self.generator)


class Dropout2d(Dropout):
    """Dropout of whole channels of [N, C, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout2d(x, self.p, self.training, generator=self.generator)


class Dropout3d(Dropout):
    """Dropout of whole channels of [N, C, D, H, W]."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout3d(x, self.p, self.training, generator=self.generator)


class AlphaDropout(Dropout):
    """Dropout that keeps mean and variance, for networks of SELU (Klambauer et al., 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.alpha_dropout(x, self.p, self.training, generator=self.generator)


class FeatureAlphaDropout(Dropout):
    """AlphaDropout of whole channels of [N, C, ...]."""

    def forward(self, x: Tensor) -> Tensor:
        return F.feature_alpha_dropout(x, self.p, self.training, generator=self.generator)
