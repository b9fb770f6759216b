# SPDX-License-Identifier: Apache-2.0
"""Normal vectors of low rank, and distributions of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tenon
from tenon import Tensor

from . import constraints
from ._sampling import log_standard_gamma
from .composed import TransformedDistribution
from .distribution import Distribution, Number, broadcast_all
from .gamma import Beta
from .normal import MultivariateNormal, Normal
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Shares that stick breaking makes of normal vectors [..., n]: n + 1 positive numbers that sum to 1."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "scale": constraints.Independent(constraints.positive, 1),
    }
    _support = constraints.simplex

    def __init__(self, loc: Tensor, scale: Tensor, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        self.loc, self.scale = base.loc, base.scale
        super().__init__(base, StickBreakingTransform(), validate_args)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean `loc` [..., n] and covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`, of a factor
    [..., n, rank]: work and memory grow with n * rank."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.Independent(constraints.real, 2),
        "cov_diag": constraints.Independent(constraints.positive, 1),
    }
    _support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        n = loc.shape[-1] if loc.ndim else 0
        if not n or cov_factor.ndim < 2 or (cov_factor.shape[-2], cov_diag.shape[-1]) != (n, n):
            raise ValueError(
                "LowRankMultivariateNormal: expected a vector [..., n], a factor [..., n, rank] and a diagonal [..., n], "
                f"got shapes {tuple(loc.shape)}, {tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}"
            )
        batch = tenon.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        rank = cov_factor.shape[-1]
        self.loc = tenon.expand(loc, [*batch, n])
        self.cov_factor = tenon.expand(cov_factor, [*batch, n, rank])
        self.cov_diag = tenon.expand(cov_diag, [*batch, n])
        super().__init__(batch, (n,), validate_args)
        # I + W' D^-1 W, of rank rows, takes the place of the covariance (Woodbury, 1950).
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        identity = tenon.eye(rank, dtype=loc.dtype, device=loc.device)
        self._small = tenon.cholesky(identity + self.cov_factor.mT @ scaled)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return tenon.square(self.cov_factor).sum(axis=-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + tenon.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Tensor:
        return tenon.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        solved = tenon.triangular_solve(self._small, scaled, upper=False)
        return tenon.diag_embed(1 / self.cov_diag) - solved.mT @ solved

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        like: dict[str, Any] = {"dtype": self.loc.dtype, "device": self.loc.device}
        shape = self._extended(sample_shape)
        short = tenon.normal([*shape[:-1], self.cov_factor.shape[-1], 1], **like)
        spread = tenon.sqrt(self.cov_diag) * tenon.normal(shape, **like)
        return self.loc + (self.cov_factor @ short).squeeze(-1) + spread

    def _half_log_det(self) -> Tensor:
        small = tenon.log(tenon.diagonal(self._small, 0, -2, -1)).sum(axis=-1)
        return small + tenon.log(self.cov_diag).sum(axis=-1) / 2

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        offset = value - self.loc
        scaled = offset / self.cov_diag
        projected = self.cov_factor.mT @ scaled.unsqueeze(-1)
        factor = tenon.expand(self._small, [*projected.shape[:-2], *self._small.shape[-2:]])
        inner = tenon.triangular_solve(factor, projected, upper=False).squeeze(-1)
        distance = (offset * scaled).sum(axis=-1) - tenon.square(inner).sum(axis=-1)
        n = self.event_shape[0]
        return -(distance + n * math.log(2 * math.pi)) / 2 - self._half_log_det()

    def entropy(self) -> Tensor:
        return self._half_log_det() + self.event_shape[0] * (1 + math.log(2 * math.pi)) / 2


class Wishart(Distribution):
    """Positive definite matrices: sums of outer products of `df` normal vectors, for whole `df`; one of the matrices
    [..., n, n] says how these vary. `df` is above n - 1."""

    arg_constraints = {
        "df": constraints.positive,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Number,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1 or given[0].ndim < 2:
            raise ValueError(
                "Wishart: expected one matrix [..., n, n] of covariance_matrix, precision_matrix and scale_tril, got "
                f"{len(given)}"
            )
        (matrix,) = given
        n = matrix.shape[-1]
        degrees = tenon.asarray(df, dtype=matrix.dtype, device=matrix.device)
        batch = tenon.broadcast_shapes(degrees.shape, matrix.shape[:-2])
        self.df = tenon.expand(degrees, batch)
        normal = MultivariateNormal(
            tenon.zeros([n], dtype=matrix.dtype, device=matrix.device),
            covariance_matrix,
            precision_matrix,
            scale_tril,
            validate_args,
        )
        self.scale_tril = tenon.expand(normal.scale_tril, [*batch, n, n])
        super().__init__(batch, (n, n), validate_args)
        if self._validates and bool(tenon.any(self.df <= n - 1)):
            raise ValueError(f"Wishart: expected df above n - 1 = {n - 1}, got {self.df.tolist()}")

    @property
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        return tenon.cholesky_inverse(self.scale_tril)

    def expand(self, batch_shape: Sequence[int]) -> Wishart:
        factor = tenon.expand(self.scale_tril, [*batch_shape, *self.event_shape])
        df = tenon.expand(self.df, batch_shape)
        return self._checked_alike(Wishart(df, scale_tril=factor, validate_args=False))

    def _degrees(self) -> Tensor:
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._degrees() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where `df` is not above n + 1: there is no largest density."""
        factor = self._degrees() - self.event_shape[0] - 1
        return tenon.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = tenon.diagonal(v, 0, -2, -1)
        return self._degrees() * (v * v + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _rsample(self, sample_shape: Sequence[int]) -> Tensor:
        """By the decomposition of Bartlett (1933)."""
        n = self.event_shape[0]
        shape = self._extended(sample_shape)
        like: dict[str, Any] = {"dtype": self.df.dtype, "device": self.df.device}
        halves = (self.df.unsqueeze(-1) - tenon.arange(n, **like)) / 2
        halves = tenon.expand(halves, shape[:-1])
        roots = tenon.exp((math.log(2.0) + log_standard_gamma(halves)) / 2)
        factor = tenon.tril(tenon.normal(shape, **like), -1) + tenon.diag_embed(roots)
        product = self.scale_tril @ factor
        return product @ product.mT

    def _log_det(self, factor: Tensor) -> Tensor:
        return 2 * tenon.log(tenon.diagonal(factor, 0, -2, -1)).sum(axis=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.event_shape[0]
        batch = tenon.broadcast_shapes(value.shape[:-2], self.batch_shape)
        own = tenon.expand(self.scale_tril, [*batch, n, n])
        root = tenon.expand(tenon.cholesky(value), [*batch, n, n])
        solved = tenon.triangular_solve(own, root, upper=False)
        trace = tenon.square(solved).sum(axis=[-2, -1])
        return (
            (self.df - n - 1) / 2 * self._log_det(root)
            - trace / 2
            - self.df * n / 2 * math.log(2.0)
            - self.df / 2 * self._log_det(self.scale_tril)
            - log_multigamma(self.df / 2, n)
        )

    def entropy(self) -> Tensor:
        n = self.event_shape[0]
        return (
            (n + 1) / 2 * (self._log_det(self.scale_tril) + n * math.log(2.0))
            + log_multigamma(self.df / 2, n)
            - (self.df - n - 1) / 2 * multi_digamma(self.df / 2, n)
            + self.df * n / 2
        )


class LKJCholesky(Distribution):
    """Cholesky factors [dim, dim] of correlation matrices with density in proportion to det ** (concentration - 1) of the
    matrix (Lewandowski, Kurowicka, Joe, 2009)."""

    arg_constraints = {"concentration": constraints.positive}
    _support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Number = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: expected dim of at least 2, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _settings(self) -> dict[str, Any]:
        return {"dim": self.dim}

    def _sample(self, sample_shape: Sequence[int]) -> Tensor:
        """A row after the other: its squared length below the diagonal is a beta variate, its direction uniform."""
        with tenon.no_grad():
            like: dict[str, Any] = {
                "dtype": self.concentration.dtype,
                "device": self.concentration.device,
            }
            batch = [*sample_shape, *self.batch_shape]
            one = tenon.ones([*batch, 1], **like)
            rows = [tenon.pad(one, [0, 0] * len(batch) + [0, self.dim - 1])]
            for i in range(1, self.dim):
                beta = Beta(
                    tenon.full_like(self.concentration, i / 2),
                    self.concentration + (self.dim - 1 - i) / 2,
                    validate_args=False,
                )
                share = beta.sample(sample_shape).unsqueeze(-1)
                direction = tenon.normal([*batch, i], **like)
                length = tenon.sqrt(tenon.square(direction).sum(axis=-1, keepdim=True))
                row = tenon.concat(
                    [tenon.sqrt(share) * direction / length, tenon.sqrt(1 - share)], -1
                )
                rows.append(tenon.pad(row, [0, 0] * len(batch) + [0, self.dim - 1 - i]))
            return tenon.stack(rows, -2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.dim
        like: dict[str, Any] = {"dtype": value.dtype, "device": value.device}
        below = n - 1 - tenon.arange(1, n, **like)
        exponents = 2 * (self.concentration.unsqueeze(-1) - 1) + below
        logs = tenon.log(tenon.diagonal(value, 0, -2, -1)[..., 1:])
        alpha = self.concentration + (n - 1) / 2
        norm = (
            (n - 1) / 2 * math.log(math.pi)
            + log_multigamma(alpha - 0.5, n - 1)
            - (n - 1) * tenon.lgamma(alpha)
        )
        return (exponents * logs).sum(axis=-1) - norm


def _halves(x: Tensor, n: int) -> Tensor:
    return x.unsqueeze(-1) - tenon.arange(n, dtype=x.dtype, device=x.device) / 2


def log_multigamma(x: Tensor, n: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `n`."""
    return tenon.lgamma(_halves(x, n)).sum(axis=-1) + n * (n - 1) / 4 * math.log(math.pi)


def multi_digamma(x: Tensor, n: int) -> Tensor:
    """The derivative of log_multigamma."""
    return tenon.digamma(_halves(x, n)).sum(axis=-1)
