# SPDX-License-Identifier: Apache-2.0
"""Linear, Embedding, and layers that only pass on or reshape."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Linear(Module):
    """`x @ weight.T + bias` over the last axis of x."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            tenon.empty([out_features, in_features], device=device, dtype=dtype)
        )
        self.bias = (
            Parameter(tenon.empty([out_features], device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(in_features)."""
        bound = 1.0 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """A table of `num_embeddings` vectors. The row `padding_index` is not trained."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_index: int | None = None,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_index is not None and not 0 <= padding_index < num_embeddings:
            raise ValueError(
                f"Embedding: expected padding_index in [0, {num_embeddings}), got {padding_index}"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_index = padding_index
        self.weight = Parameter(
            tenon.empty([num_embeddings, embedding_dim], device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_index is not None:
            init.zeros_(self.weight.detach()[self.padding_index])

    def forward(self, indices: Tensor) -> Tensor:
        return F.embedding(indices, self.weight, self.padding_index)

    def extra_repr(self) -> str:
        padding = "" if self.padding_index is None else f", padding_index={self.padding_index}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Identity(Module):
    """Returns its input; takes and ignores any settings, so that it can stand in for a layer."""

    def __init__(self, *settings: Any, **more: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """Joins axes `start` to `stop`; by default all but the batch."""

    def __init__(self, start: int = 1, stop: int = -1) -> None:
        self.start, self.stop = start, stop

    def forward(self, x: Tensor) -> Tensor:
        return F.flatten(x, self.start, self.stop)

    def extra_repr(self) -> str:
        return f"{self.start}, {self.stop}"


class Dropout(Module):
    """In training, zeroes elements with probability `p` and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"Dropout: expected a probability, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"{self.p}"
