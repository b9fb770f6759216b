# SPDX-License-Identifier: Apache-2.0
"""Tables of vectors."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Embedding(Module):
    """A table of `num_embeddings` vectors. The row `padding_idx` is zero and is not trained.

    With `max_norm`, rows that are read are scaled in place to a `norm_type`-norm of at most that. With
    `scale_grad_by_freq` a row's gradient is divided by how often it was read. With `sparse` the weight's gradient
    consists of the rows that were read, and optimizers that can update those alone (docs/sparse.md).
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.sparse = sparse
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _checked(padding_idx, num_embeddings, type(self).__name__)
        self.max_norm, self.norm_type = max_norm, norm_type
        shape = [num_embeddings, embedding_dim]
        self.weight = _table(shape, _weight, device, dtype, type(self).__name__)
        self.weight.requires_grad = not _freeze
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table with the rows of `embeddings` [count, features]."""
        count, features = embeddings.shape
        return cls(
            count,
            features,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            embeddings,
            freeze,
        )

    def reset_parameters(self) -> None:
        """Normal; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, indices: Tensor) -> Tensor:
        if self.max_norm is not None:
            _renormalize(self.weight, indices, self.max_norm, self.norm_type)
        return F.embedding(
            indices, self.weight, self.padding_idx, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(Module):
    """Sum, mean or maximum of the vectors of every bag of indices; see functional.embedding_bag."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _refuse_sparse(sparse, type(self).__name__)
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"EmbeddingBag: expected mode 'sum', 'mean' or 'max', got {mode!r}")
        if scale_grad_by_freq and mode == "max":
            raise ValueError(
                "EmbeddingBag: expected scale_grad_by_freq with mode 'sum' or 'mean', got 'max'"
            )
        self.scale_grad_by_freq = scale_grad_by_freq
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.padding_idx = _checked(padding_idx, num_embeddings, type(self).__name__)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.include_last_offset = include_last_offset
        shape = [num_embeddings, embedding_dim]
        self.weight = _table(shape, _weight, device, dtype, type(self).__name__)
        if _weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        if self.max_norm is not None:
            _renormalize(self.weight, indices, self.max_norm, self.norm_type)
        return F.embedding_bag(
            indices,
            self.weight,
            offsets,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
            self.scale_grad_by_freq,
        )

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


def _refuse_sparse(sparse: bool, caller: str) -> None:
    if sparse:
        raise NotImplementedError(
            f"{caller}: gradients are dense, expected sparse False, got True; leave it out, "
            "or use Embedding(sparse=True)"
        )


def _table(shape: list[int], given: Tensor | None, device: Any, dtype: Any, caller: str) -> Any:
    """The parameter of a layer: new, or over the memory of a tensor that the caller has."""
    if given is None:
        return Parameter(tenon.empty(shape, device=device, dtype=dtype))
    if list(given.shape) != shape:
        raise ValueError(f"{caller}: expected _weight of shape {shape}, got {[*given.shape]}")
    return Parameter(given)


def _checked(padding_idx: int | None, count: int, caller: str) -> int | None:
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise ValueError(f"{caller}: expected padding_idx in [0, {count}), got {padding_idx}")
    return padding_idx % count


def _renormalize(weight: Tensor, indices: Tensor, limit: float, p: float) -> None:
    with tenon.no_grad():
        rows = tenon.unique_values(indices.reshape([-1]))
        chosen = tenon.index_select(weight, rows, 0)
        norms = tenon.norm(chosen, p, 1, keepdim=True)
        scale = tenon.where(norms > limit, limit / (norms + 1e-7), 1.0)
        weight.copy_(tenon.index_put(weight, [rows], chosen * scale))
