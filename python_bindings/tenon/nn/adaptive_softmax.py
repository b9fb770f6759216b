# SPDX-License-Identifier: Apache-2.0
"""An approximate softmax for many classes, of which few are frequent (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor

from . import functional as F
from .containers import ModuleList, Sequential
from .functional._common import from_zero
from .linear import Linear
from .module import Module


class ASMoutput(NamedTuple):
    """Log-probability of each target, and their negative mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are sorted by frequency, the most frequent first.

    `cutoffs` splits the classes: the first part and one entry for each further part are in the
    head; part i has a factor `div_value ** (i + 1)` fewer features.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or ends[0] < 1 or ends[-1] >= n_classes:
            raise ValueError(
                "AdaptiveLogSoftmaxWithLoss: expected cutoffs that increase from 1 to "
                f"{n_classes - 1}, got {ends}"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value = [*ends, n_classes], div_value
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head = Linear(in_features, ends[0] + len(ends), head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, False, **options),
                    Linear(hidden, size, False, **options),
                )
            )

    def forward(self, x: Tensor, target: Tensor) -> ASMoutput:
        """`x` [N, features] and classes [N]."""
        target = from_zero(target, self.n_classes).unsqueeze(-1)
        chosen = tenon.gather(self.log_prob(x), target, -1).squeeze(-1)
        return ASMoutput(chosen, -chosen.mean())

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-probabilities of all classes, [N, n_classes]."""
        head = F.log_softmax(self.head(x), -1)
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            part = F.log_softmax(cluster(x), -1)
            parts.append(part + head[..., self.shortlist_size + i].unsqueeze(-1))
        return tenon.concat(parts, -1)

    def predict(self, x: Tensor) -> Tensor:
        """The most probable class of each row."""
        return tenon.argmax(self.log_prob(x), -1)
