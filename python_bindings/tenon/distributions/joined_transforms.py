# SPDX-License-Identifier: Apache-2.0
"""Transforms of parts side by side, to factors of correlations, to positive definite matrices, and by the distribution
function of a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import constraints
from .constraints import Constraint
from .distribution import Distribution, sum_rightmost
from .transforms import LowerCholeskyTransform, Transform


class _Joined(Transform):
    """Maps of the parts of a tensor along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int) -> None:
        if not tseq or not all(isinstance(each, Transform) for each in tseq):
            raise TypeError(
                f"{type(self).__name__}: expected a list of transforms, got {list(tseq)!r}"
            )
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(each.bijective for each in tseq)
        self.domain = self._constraint([each.domain for each in tseq])
        self.codomain = self._constraint([each.codomain for each in tseq])

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        raise NotImplementedError

    def _parts(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        parts = self._parts(x)
        return self._join([each(part) for each, part in zip(self.transforms, parts, strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        parts = self._parts(y)
        pairs = zip(self.transforms, parts, strict=True)
        return self._join([each.inv(part) for each, part in pairs])

    def _sizes(self, x: Tensor, y: Tensor) -> list[Tensor]:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [each.log_abs_det_jacobian(a, b) for each, a, b in triples]


class StackTransform(_Joined):
    """Slice i along `dim` by map i."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0) -> None:
        super().__init__(tseq, dim)

    def _settings(self) -> tuple[Any, ...]:
        return self.transforms, self.dim

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        return constraints.stack(parts, self.dim)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: expected {len(self.transforms)} slices along axis {self.dim}, got shape "
                f"{tuple(x.shape)}"
            )
        return list(tenon.unbind(x, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return tenon.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(self._sizes(x, y))


class CatTransform(_Joined):
    """Parts of `lengths` along `dim`, 1 each if none are given, by one map each."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.lengths = [1] * len(tseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(tseq):
            raise ValueError(
                f"CatTransform: expected a length for each of {len(tseq)} transforms, got {self.lengths}"
            )
        super().__init__(tseq, dim)

    def _settings(self) -> tuple[Any, ...]:
        return self.transforms, self.dim, self.lengths

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        return constraints.cat(parts, self.dim, self.lengths)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != sum(self.lengths):
            raise ValueError(
                f"CatTransform: expected {sum(self.lengths)} slices along axis {self.dim}, got shape {tuple(x.shape)}"
            )
        return list(tenon.split(x, self.lengths, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return tenon.concat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        most = self.domain.event_dim
        sizes = [
            sum_rightmost(size, most - each.domain.event_dim)
            for each, size in zip(self.transforms, self._sizes(x, y), strict=True)
        ]
        # An axis of events has been summed up; an axis of the batch is still there.
        axis = self.dim if self.dim < 0 else self.dim - x.ndim
        if axis >= -most:
            total = sizes[0]
            for size in sizes[1:]:
                total = total + size
            return total
        return tenon.concat(sizes, axis + most)


class CorrCholeskyTransform(Transform):
    """Vectors of n * (n - 1) / 2 numbers to Cholesky factors [n, n] of correlation matrices: tanh of them are partial
    correlations."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _size(self, count: int) -> int:
        n = round((1 + math.sqrt(1 + 8 * count)) / 2)
        if n * (n - 1) // 2 != count:
            raise ValueError(
                f"CorrCholeskyTransform: expected n * (n - 1) / 2 numbers for some n, got {count}"
            )
        return n

    @staticmethod
    def _indices(n: int, device: Any) -> Tensor:
        """Where the numbers below the diagonal lie, row by row, in a flat matrix."""
        indices = [i * n + j for i in range(n) for j in range(i)]
        return tenon.tensor(indices, dtype=tenon.int64, device=device)

    def _left(self, square: Tensor) -> Tensor:
        """What of the length 1 of each row the elements before leave over, squared."""
        ones = [0, 0] * (square.ndim - 1)
        return tenon.pad(1 - tenon.cumsum(square, -1), [*ones, 1, 0], value=1.0)[..., :-1]

    def _call(self, x: Tensor) -> Tensor:
        n = self._size(x.shape[-1])
        limit = 1 - 4 * tenon.finfo(x.dtype).eps
        shares = tenon.clip(tenon.tanh(x), -limit, limit)
        flat = tenon.zeros([*x.shape[:-1], n * n], dtype=x.dtype, device=x.device)
        indices = tenon.expand(self._indices(n, x.device), x.shape)
        matrix = tenon.scatter(flat, indices, shares, -1).reshape([*x.shape[:-1], n, n])
        kept = tenon.cumprod(tenon.sqrt(1 - tenon.square(matrix)), -1)
        ones = [0, 0] * (kept.ndim - 1)
        before = tenon.pad(kept, [*ones, 1, 0], value=1.0)[..., :-1]
        return (matrix + tenon.eye(n, dtype=x.dtype, device=x.device)) * tenon.tril(before)

    def _below(self, matrix: Tensor) -> Tensor:
        n = matrix.shape[-1]
        flat = matrix.reshape([*matrix.shape[:-2], n * n])
        return tenon.index_select(flat, self._indices(n, matrix.device), -1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = self._below(self._left(tenon.square(y)))
        return tenon.atanh(self._below(y) / tenon.sqrt(left))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tenon.log(self._below(self._left(tenon.square(y)))) / 2
        moved = 2 * (math.log(2.0) - x - tenon.softplus(-2 * x))  # log(1 - tanh(x)**2)
        return (left + moved).sum(axis=-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = self._size(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones: the factor that LowerCholeskyTransform makes, times its transpose."""

    domain = constraints.Independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(tenon.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers: its samples become uniform ones."""

    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return self.distribution.support

    def _settings(self) -> tuple[Any, ...]:
        return (self.distribution,)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
